package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// count is how many tests, or judged answers, ended how. again is how many answers were judged once more, because the first verdict
// blamed the machine.
type count struct{ passed, failed, again int }

func (c count) add(o count) count {
	return count{c.passed + o.passed, c.failed + o.failed, c.again + o.again}
}

// String is the line that ends a run.
func (c count) String() string {
	line := fmt.Sprintf("%d passed, %d failed", c.passed, c.failed)
	if c.again > 0 {
		line = fmt.Sprintf("judged-again-%d: %s", c.again, line)
	}
	return line
}

// goTest has gotestsum run `go test` in a folder. The error is about the run itself.
func (a *app) goTest(ctx context.Context, dir string, env []string, args ...string) (n count, err error) {
	events, err := os.CreateTemp("", "go-test-*.json")
	if err != nil {
		return n, fmt.Errorf("test %s: %w", dir, err)
	}
	defer func() { _ = errors.Join(events.Close(), os.Remove(events.Name())) }()
	tool := []string{"tool", "-modfile=" + filepath.Join(a.Root, "scripts", "tools", "go.mod"), "gotestsum", "--format=pkgname", "--format-hide-empty-pkg"}
	cmd := exec.CommandContext(ctx, "go", append(append(tool, "--jsonfile="+events.Name(), "--"), args...)...)
	cmd.Dir, cmd.Env = dir, append(append(os.Environ(), "GOWORK=off"), env...)
	cmd.Stdout, cmd.Stderr = a.Out, a.Err
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGINT) }, 2*time.Minute // tests delete their clusters
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return n, ctx.Err()
	}
	n, err = countTests(events, os.Geteuid() == 0)
	if runErr != nil && n.failed == 0 {
		n.failed++ // a package does not compile, or its TestMain gave up
	}
	return n, err
}

// countTests counts the tests of what `go test -json` wrote. A test that was skipped counts as failed, because a suite that silently
// shrinks proves nothing, unless it needs root and there is none.
func countTests(events io.Reader, root bool) (n count, err error) {
	needsRoot := map[string]bool{}
	for lines := json.NewDecoder(events); ; {
		var e struct{ Action, Package, Test, Output string }
		if err := lines.Decode(&e); errors.Is(err, io.EOF) {
			return n, nil
		} else if err != nil {
			return n, fmt.Errorf("read the events of go test: %w", err)
		}
		test := e.Package + " " + e.Test
		switch {
		case e.Test == "":
		case e.Action == "output" && strings.Contains(e.Output, "not root"):
			needsRoot[test] = true
		case e.Action == "pass":
			n.passed++
		case e.Action == "fail", e.Action == "skip" && (root || !needsRoot[test]):
			n.failed++
		}
	}
}
