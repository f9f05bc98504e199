package diagnostics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/diagnostics"
)

const workspace = "/home/me/workspace"

// ofTheCheck and ofAnother are filters for the check that the logs in testdata are about, and for one that ran beside it.
var (
	checkNamespaces = regexp.MustCompile(`\blab-[a-z0-9-]+-[a-z0-9]{5}\b`)
	ofTheCheck      = diagnostics.LogFilter{Names: []string{"lab-creates-deployment-x7k2p"}, CheckNamespaces: checkNamespaces}
	ofAnother       = diagnostics.LogFilter{Names: []string{"lab-follows-size-abcde"}, CheckNamespaces: checkNamespaces}
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestFindPanic(t *testing.T) {
	frames := []string{"internal/controller/memcached.go:21", "internal/controller/memcached.go:18", "internal/controller/memcached.go:32"}
	const overflow = "fatal error: stack overflow\n\nruntime stack:\nruntime.throw({0x491047?})\n\t/usr/local/go/src/runtime/panic.go:1229 +0x48\n\n" +
		"goroutine 1 gp=0x3 m=0 [running]:\nmain.f(0x2?)\n\t" + workspace + "/cmd/main.go:2 +0x2b fp=0x1\n"
	want := &diagnostics.Panic{Message: "fatal error: stack overflow", Frames: []string{"cmd/main.go:2"}}
	if diff := cmp.Diff(want, diagnostics.FindPanic(overflow, workspace, ofTheCheck)); diff != "" {
		t.Error(diff)
	}
	if p := diagnostics.FindPanic(overflow, "/home/somebody/else", ofTheCheck); p == nil || len(p.Frames) != 0 {
		t.Errorf("outside of the workspace: %+v", p)
	}
	for name, want := range map[string]*diagnostics.Panic{
		"dev.log":            {Message: "assignment to entry in nil map", Frames: []string{"internal/controller/memcached.go:21", "internal/controller/memcached.go:54"}},
		"wrapped.log":        {Message: "wrap: boom second line", Frames: []string{"internal/controller/memcached.go:52"}},
		"recovered.log":      {Message: "assignment to entry in nil map", Frames: frames, Recovered: true},
		"recovered-json.log": {Message: "assignment to entry in nil map", Frames: frames, Recovered: true},
	} {
		if diff := cmp.Diff(want, diagnostics.FindPanic(read(t, name), workspace, ofTheCheck)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestRecoveredPanicOfOtherCheck(t *testing.T) {
	if p := diagnostics.FindPanic(read(t, "recovered.log"), workspace, ofAnother); p != nil {
		t.Errorf("it was found all the same: %v", p)
	}
	if p := diagnostics.FindPanic(read(t, "dev.log"), workspace, ofAnother); p == nil {
		t.Error("a panic that ends the program ends it for every check, and was not found")
	}
}

func TestTextAboutPanicIsNoPanic(t *testing.T) {
	for _, log := range []string{"", "panic: said the learner\n", "2026-11-21T09:31:31Z\tINFO\tdo not panic: all is well\n"} {
		if p := diagnostics.FindPanic(log, workspace, ofTheCheck); p != nil {
			t.Errorf("%q: found %v", log, p)
		}
	}
}

func TestTroubleIsCounted(t *testing.T) {
	log := read(t, "recovered.log")
	log += strings.Replace(log, "09:31:31", "09:31:32", 1)
	want := []string{
		"ERROR Reconciler error: panic: assignment to entry in nil map [recovered] (2 times)",
		"ERROR Reconciler error: create Deployment: deployments.apps is forbidden (2 times)",
	}
	if diff := cmp.Diff(want, diagnostics.Trouble(log, ofTheCheck, 2)); diff != "" {
		t.Error(diff)
	}
	if got := diagnostics.Trouble(log, ofAnother, 2); len(got) != 0 {
		t.Errorf("another check is told of it: %q", got)
	}
}

// What names the check comes last, where a reader looks first, and before what names nobody.
func TestTroubleOfTheCheckComesLast(t *testing.T) {
	log := strings.Join([]string{
		"error: one of lab-creates-deployment-x7k2p",
		"error: of nobody",
		"error: of lab-follows-size-abcde",
		"no news",
	}, "\n")
	if diff := cmp.Diff([]string{"error: of nobody", "error: one of lab-creates-deployment-x7k2p"}, diagnostics.Trouble(log, ofTheCheck, 5)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"error: one of lab-creates-deployment-x7k2p"}, diagnostics.Trouble(log, ofTheCheck, 1)); diff != "" {
		t.Error(diff)
	}
}

func TestShorten(t *testing.T) {
	for entry, want := range map[string]string{
		`2026-11-21T09:31:31Z	INFO	Created Deployment	{"controller": "memcached", "Memcached": {"name":"abc","namespace":"n"}, "replicas": 3}`: "INFO Created Deployment",
		`{"level":"error","ts":"2026-11-21T09:31:31Z","msg":"Reconciler error","namespace":"n","error":"no\nluck"}`:                            "Reconciler error: no luck",
		`time=2026-11-21T09:31:31.000Z level=ERROR msg="no luck" namespace=n`:                                                                  `level=ERROR msg="no luck" namespace=n`,
		`E1121 09:31:31.123456   12345 reflector.go:200] "Failed to watch" err="no luck"`:                                                      `reflector.go:200] "Failed to watch" err="no luck"`,
		`2009/11/10 23:00:00 no luck with {this}`:                                                                                              "no luck with {this}",
		strings.Repeat("x", 400) + " no luck":                                                                                                  strings.Repeat("x", 200) + "…" + strings.Repeat("x", 91) + " no luck",
	} {
		if got := diagnostics.Shorten(entry); got != want {
			t.Errorf("%s\nbecame %q\nwant   %q", entry, got, want)
		}
	}
}
