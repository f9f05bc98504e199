package proof

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// TestBrokenProgramsFail judges the solution of lab 4 with an init function that keeps it from being a manager. Whatever it does, it
// is the learner's, and not the machine's.
func TestBrokenProgramsFail(t *testing.T) {
	for name, tc := range map[string]struct {
		start string // the body of the init function
		cause string // of the first failure
		says  string // in what it saw
	}{
		"hangs":  {`for {}`, suite.CauseManagerSilent, "has not sent one request"},
		"panics": {`panic("the kettle is empty")`, suite.CauseManagerExited, "the kettle is empty"},
		"exits":  {`os.Exit(0)`, suite.CauseManagerExited, "exit status 0"},
		// The one request keeps it from being judged as silent.
		"takes memory without end": {`
	if os.Getenv("KUBECONFIG") == "" {
		return
	}
	config := ctrl.GetConfigOrDie()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		panic(err)
	}
	answer, err := client.Get(config.Host + "/version")
	if err != nil {
		panic(err)
	}
	answer.Body.Close()
	for all := [][]byte{}; ; {
		all = append(all, bytes.Repeat([]byte("x"), 1<<20))
	}`, suite.CauseManagerExited, "out of memory"},
	} {
		t.Run(name, func(t *testing.T) {
			workspace := coursetest.Stage(t, load(t), 4)
			writeStart(t, workspace, tc.start)
			r := judge(t, workspace, 4)[0]
			first := r.First()
			if r.Verdict != verdict.Fail || first == nil || first.Cause != tc.cause || !strings.Contains(first.Seen, tc.says) {
				t.Errorf("the verdict is %s, and the first failure %+v; want the cause %s and %q\n%s", r.Verdict, first, tc.cause, tc.says, describe(r))
			}
		})
	}
}

// TestBurdensPass judges the solution of lab 4 while it prints a gigabyte, ignores SIGTERM, and has children in sessions of their own.
// None of them outlives the run.
func TestBurdensPass(t *testing.T) {
	workspace := coursetest.Stage(t, load(t), 4)
	marker := workspace + "/child"
	writeStart(t, workspace, `
	if os.Getenv("KUBECONFIG") == "" {
		return
	}
	signal.Ignore(syscall.SIGTERM)
	for range 20 {
		cmd := exec.Command("sh", "-c", "sleep 1000; : `+marker+`")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		_ = cmd.Start()
	}
	go func() {
		for line, n := strings.Repeat("all work and no play ", 50) + "\n", 0; n < 1<<30; n += len(line) {
			os.Stderr.WriteString(line)
		}
	}()`)
	requirePass(t, judge(t, workspace, 4))
	if left := processesOf(t, marker); len(left) > 0 {
		t.Errorf("children of the program outlive the run: %v", left)
	}
}

// writeStart adds an init function to the program.
func writeStart(t *testing.T, workspace, body string) {
	t.Helper()
	text := "package main\n\nimport (\n"
	for _, pkg := range []string{"bytes", "os", "os/exec", "os/signal", "strings", "syscall", "k8s.io/client-go/rest"} {
		if strings.Contains(body, pkg[strings.LastIndex(pkg, "/")+1:]+".") {
			text += "\t\"" + pkg + "\"\n"
		}
	}
	if strings.Contains(body, "ctrl.") {
		text += "\tctrl \"sigs.k8s.io/controller-runtime\"\n"
	}
	coursetest.Write(t, workspace, "cmd/start.go", text+")\n\nfunc init() {\n"+body+"\n}\n")
}
