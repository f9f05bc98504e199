package diagnostics_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/diagnostics"
)

const workspace = "/home/me/workspace"

// ofTheCheck is the filter of the check that the logs in testdata are about, ofAnother of a check that ran at the same time.
var (
	ofTheCheck = diagnostics.LogFilter{"lab-creates-deployment-x7k2p"}
	ofAnother  = diagnostics.LogFilter{"lab-follows-size-abcde"}
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
	const overflow = "fatal error: stack overflow\n\nruntime stack:\nruntime.throw({0x491047?})\n\t/usr/local/go/src/runtime/panic.go:1229 +0x48\n\n" +
		"goroutine 1 gp=0x3 m=0 [running]:\nmain.f(0x2?)\n\t" + workspace + "/cmd/main.go:2 +0x2b fp=0x1\n"
	elsewhere := strings.ReplaceAll(overflow, workspace, "/home/somebody/else")
	for log, want := range map[string]string{
		overflow:                      "fatal error: stack overflow, at cmd/main.go:2",
		elsewhere:                     "fatal error: stack overflow",
		read(t, "dev.log"):            "assignment to entry in nil map, at internal/controller/memcached.go:21",
		read(t, "wrapped.log"):        "wrap: boom second line, at internal/controller/memcached.go:52",
		read(t, "recovered.log"):      "assignment to entry in nil map, at internal/controller/memcached.go:21",
		read(t, "recovered-json.log"): "assignment to entry in nil map, at internal/controller/memcached.go:21",
	} {
		if got := diagnostics.FindPanic(log, workspace, ofTheCheck); got != want {
			t.Errorf("%.100s: %s, want %s", log, got, want)
		}
	}
}

func TestRecoveredPanicOfOtherCheck(t *testing.T) {
	for log, found := range map[string]bool{read(t, "recovered.log"): false, read(t, "dev.log"): true, "INFO do not panic: all is well\n": false} {
		if p := diagnostics.FindPanic(log, workspace, ofAnother); (p != "") != found { // one that ends the program is everybody's
			t.Errorf("%.40s: %v", log, p)
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

func TestShorten(t *testing.T) {
	for entry, want := range map[string]string{
		`2026-11-21T09:31:31Z	INFO	Created Deployment	{"controller": "memcached", "Memcached": {"name":"abc","namespace":"n"}, "replicas": 3}`: "INFO Created Deployment",
		`{"level":"error","ts":"2026-11-21T09:31:31Z","msg":"Reconciler error","namespace":"n","error":"no\nluck"}`:                            "Reconciler error: no luck",
		`time=2026-11-21T09:31:31.000Z level=ERROR msg="no luck" namespace=n`:                                                                  `level=ERROR msg="no luck" namespace=n`,
		`E1121 09:31:31.123456   12345 reflector.go:200] "Failed to watch" err="no luck"`:                                                      `reflector.go:200] "Failed to watch" err="no luck"`,
		`2009/11/10 23:00:00 no luck with {this}`:                                                                                              "no luck with {this}",
		strings.Repeat("x", 400) + " no luck":                                                                                                  strings.Repeat("x", 173) + "…" + strings.Repeat("x", 78) + " no luck",
	} {
		if got := diagnostics.Shorten(entry); got != want {
			t.Errorf("%s\nbecame %q\nwant   %q", entry, got, want)
		}
	}
}
