package proof

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// TestRightAnswersPass judges whole operators that keep the contract card and share nothing else with
// ours: server-side apply, client-go alone, an older library; with other layouts, labels, reasons, messages,
// log lines and flags. Whatever a check expects beyond the card fails on one of them. Lab 7 runs labs 4 to 6 again, so
// all are judged under their generated role, as later ones are.
func TestRightAnswersPass(t *testing.T) {
	c := load(t)
	for _, workspace := range rightAnswers(t) {
		t.Run(filepath.Base(workspace), func(t *testing.T) {
			t.Parallel()
			compileDependencies(t, workspace)
			for _, r := range judgeFolder(t, c, workspace, []int{4, 5, 6, 7, 8, 9, 10}, false) {
				requirePass(t, r)
				t.Logf("lab %d: %d checks hold in %.0f s", r.Lab, r.Count(verdict.Passed), r.Seconds)
			}
		})
	}
}

// TestRightAnswersAreSound asks of the right answers what `make verify` asks of the other modules.
func TestRightAnswersAreSound(t *testing.T) {
	for _, workspace := range rightAnswers(t) {
		t.Run(filepath.Base(workspace), func(t *testing.T) {
			run(t, workspace, "go", "mod", "tidy", "-diff")
			run(t, workspace, "go", "vet", "./...")
		})
	}
}

// rightAnswers are copies of the folders of labs/correct, with the files that `make generate` makes in them.
func rightAnswers(t *testing.T) (folders []string) {
	t.Helper()
	programs, err := tools()
	if err != nil {
		t.Fatal(err)
	}
	modules, err := filepath.Glob(filepath.Join(root, "labs", "correct", "*", "go.mod"))
	if err != nil || len(modules) == 0 {
		t.Fatalf("there are %d right answers in labs/correct (%v)", len(modules), err)
	}
	dir := t.TempDir()
	for _, file := range modules {
		answer := filepath.Dir(file)
		folder := filepath.Join(dir, filepath.Base(answer))
		if err := os.CopyFS(folder, os.DirFS(answer)); err != nil {
			t.Fatal(err)
		}
		run(t, folder, "make", "generate", "CONTROLLER_GEN="+programs.ControllerGen)
		folders = append(folders, folder)
	}
	return folders
}

// Where everything is slow, a right operator takes as long as this to start, and for a pass. What it finds when it starts
// stays at the end of controller-runtime's queue for as long as other checks make news.
func TestASlowRightAnswerPasses(t *testing.T) {
	c := load(t)
	workspace := coursetest.Stage(t, c, 7)
	coursetest.Write(t, workspace, "internal/controller/slow.go",
		"package controller\n\nimport \"time\"\n\nfunc slow() { time.Sleep(80 * time.Millisecond) }\n")
	beginReconcile(t, workspace, "slow()")
	coursetest.Write(t, workspace, "cmd/slow.go", "package main\n\nimport \"time\"\n\nfunc init() { time.Sleep(2 * time.Second) }\n")
	for _, r := range judgeFolder(t, c, workspace, []int{7}, false) {
		requirePass(t, r)
	}
}

// A program may have no flags, and ports of its own. Two of it cannot run on one machine, so its checks are judged by one
// process.
func TestARightAnswerThatCannotRunTwicePasses(t *testing.T) {
	c := load(t)
	workspace := coursetest.Stage(t, c, 5)
	coursetest.Write(t, workspace, "cmd/ports.go", fmt.Sprintf(`package main

import "os"

func init() {
	if len(os.Args) == 2 && os.Args[1] == "-h" {
		os.Exit(0)
	}
	os.Args = []string{os.Args[0], "--health-probe-bind-address=%s"}
}
`, fixedAddress(t)))
	for _, r := range judgeFolder(t, c, workspace, []int{4, 5}, false) {
		requirePass(t, r)
		t.Logf("lab %d: %d checks hold in %.0f s", r.Lab, r.Count(verdict.Passed), r.Seconds)
	}
}

// A program may elect a leader whatever its flags say. The lease of a process that was killed stays behind it.
func TestARightAnswerThatElectsALeaderPasses(t *testing.T) {
	c := load(t)
	workspace := coursetest.Stage(t, c, 5)
	const name, old = "cmd/main.go", "LeaderElection:         enableLeaderElection,"
	main := coursetest.Read(t, workspace, name)
	if !strings.Contains(main, old) {
		t.Fatalf("%s has no %q", name, old)
	}
	coursetest.Write(t, workspace, name, strings.Replace(main, old,
		`LeaderElection: enableLeaderElection || true, LeaderElectionNamespace: "default",`, 1))
	for _, r := range judgeFolder(t, c, workspace, []int{4, 5}, false) {
		requirePass(t, r)
		t.Logf("lab %d: %d checks hold in %.0f s", r.Lab, r.Count(verdict.Passed), r.Seconds)
	}
}

// The ports that a program may have for its own. The kernel gives ports from 32768 on to whoever asks for any, and those
// that the checks choose for a manager and an embedded control plane are below 30000.
const lowestFixedPort, highestFixedPort = 30000, 32767

// fixedAddress is a loopback address that is free now, and that nobody gets by chance before the program listens there.
func fixedAddress(t *testing.T) string {
	t.Helper()
	for range highestFixedPort - lowestFixedPort {
		address := fmt.Sprintf("127.0.0.1:%d", lowestFixedPort+rand.IntN(highestFixedPort-lowestFixedPort+1))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatalf("no port between %d and %d is free", lowestFixedPort, highestFixedPort)
	return ""
}

// compileDependencies fills the build cache: nobody else needs some of these versions, and the limit on a
// learner's compilation is not what is judged here. It links nothing.
func compileDependencies(t *testing.T, module string) {
	t.Helper()
	run(t, module, "go", "list", "-buildvcs=false", "-export", "-deps", "./...")
}

// run has a program do something with a module.
func run(t *testing.T, module, program string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s in %s: %v\n%s", strings.Join(cmd.Args, " "), module, err, out)
	}
}
