//go:build linux

package proof

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

const (
	// plugLimit is how long `lab watch` may take to come to the moment that a test waits for: the command compiles
	// the checks, makes a cluster and judges lab 1, on a machine that does other things beside it.
	plugLimit = 5 * time.Minute
	// nextLimit is how long the next command may take, with a verdict on lab 1.
	nextLimit = 4 * time.Minute
)

// TestPullingThePlugLeavesNothing kills `lab watch`, or everything that it started, without a word at different
// moments. The next command works, and after it nothing is left.
func TestPullingThePlugLeavesNothing(t *testing.T) {
	p := newPlug(t) // not in parallel: it compiles a second checkout, and makes two clusters at a time
	for _, tc := range []struct {
		name   string
		moment func(*watching) bool
		pull   func(*watching)
	}{
		{"while its first cluster is made", (*watching).creates, (*watching).kill},
		{"while it judges, and a cluster waits or is made", (*watching).claimed, (*watching).kill},
		{"everything but the command", (*watching).claimed, (*watching).killChildren},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := p.watch(t)
			w.await(tc.moment)
			tc.pull(w)
			w.end()
			out, err := p.command(t, nextLimit, "check", "1").CombinedOutput()
			if err != nil || !strings.Contains(string(out), fmt.Sprintf("all %d checks hold", len(load(t).Labs[0].Checks))) {
				t.Fatalf("the next command: %v\n%s", err, out)
			}
			p.requireNothingLeft(t)
		})
	}
}

// plug is a checkout of its own, with the solution of lab 1.
type plug struct {
	binary, root string
	clusters     *clusters.Manager
	seen         map[string]bool // the names of its clusters
}

func newPlug(t *testing.T) *plug {
	t.Helper()
	p := &plug{binary: buildLab(t), root: filepath.Join(t.TempDir(), "checkout"), seen: map[string]bool{}}
	for _, name := range []string{"go.mod", "go.sum"} {
		coursetest.Write(t, p.root, name, coursetest.Read(t, root, name))
	}
	for _, dir := range []string{"clusters", "labs", "operator", "scripts"} {
		if err := os.CopyFS(filepath.Join(p.root, dir), os.DirFS(filepath.Join(root, dir))); err != nil {
			t.Fatal(err)
		}
	}
	state := filepath.Join(p.root, ".lab")
	var err error
	if p.clusters, err = clusters.New(state); err != nil {
		t.Fatal(err)
	}
	if out, err := p.command(t, nextLimit, "solve", "1").CombinedOutput(); err != nil {
		t.Fatalf("solve 1: %v\n%s", err, out)
	}
	t.Cleanup(func() { // of a test that failed
		if out, err := p.command(t, nextLimit, "down").CombinedOutput(); err != nil {
			t.Errorf("lab down: %v\n%s", err, out)
		}
	})
	return p
}

// command is the lab command in the checkout, which is killed after the limit.
func (p *plug) command(t *testing.T, limit time.Duration, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, p.binary, append([]string{"--cluster", "kind", "--node-image", os.Getenv("NODE_IMAGE")}, args...)...)
	cmd.Dir, cmd.WaitDelay = p.root, time.Second
	return cmd
}

// requireNothingLeft wants no record, no cluster and no process of the checkout.
func (p *plug) requireNothingLeft(t *testing.T) {
	t.Helper()
	if owners, err := p.clusters.List(t.Context()); err != nil || len(owners) > 0 {
		t.Errorf("records are left: %+v, %v", owners, err)
	}
	names, err := p.clusters.Provider().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if p.seen[name] {
			t.Errorf("cluster %s is left", name)
		}
	}
	if left := processesOf(t, p.root); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// watching is a `lab watch` at work.
type watching struct {
	t      *testing.T
	plug   *plug
	cmd    *exec.Cmd
	output bytes.Buffer
	ended  chan error
}

func (p *plug) watch(t *testing.T) *watching {
	t.Helper()
	w := &watching{t: t, plug: p, cmd: p.command(t, plugLimit, "watch", "1"), ended: make(chan error, 1)}
	w.cmd.Stdout, w.cmd.Stderr = &w.output, &w.output
	if err := w.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { w.ended <- w.cmd.Wait() }()
	return w
}

// await returns at the moment.
func (w *watching) await(moment func(*watching) bool) {
	w.t.Helper()
	for tick := time.NewTicker(50 * time.Millisecond); !moment(w); {
		select {
		case err := <-w.ended:
			w.t.Fatalf("lab watch ended by itself: %v\n%s", err, w.output.String())
		case <-tick.C:
		}
	}
}

// creates says whether the engine knows a node of a cluster of ours.
func (w *watching) creates() bool {
	for _, owner := range w.records() {
		names, err := w.plug.clusters.Provider().List(w.t.Context())
		if err == nil && slices.Contains(names, owner.Name) {
			return true
		}
	}
	return false
}

// claimed says whether a cluster is in use and another one was begun.
func (w *watching) claimed() bool {
	records := w.records()
	return len(records) > 1 && slices.ContainsFunc(records, func(o clusters.Record) bool { return o.Cluster != nil })
}

func (w *watching) records() []clusters.Record {
	w.t.Helper()
	owners, err := w.plug.clusters.List(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, owner := range owners {
		w.plug.seen[owner.Name] = true
	}
	return owners
}

// kill kills the command.
func (w *watching) kill() { _ = w.cmd.Process.Kill() }

// killChildren kills every process that the command has started, however indirectly, and asks it to end.
func (w *watching) killChildren() {
	for _, pid := range descendants(w.t, w.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	_ = w.cmd.Process.Signal(syscall.SIGTERM)
}

// end waits for the end of the command.
func (w *watching) end() {
	w.t.Helper()
	select {
	case <-w.ended: //nolint:errcheck // killed, as intended
	case <-time.After(nextLimit):
		w.t.Fatalf("lab watch does not end:\n%s", w.output.String())
	}
}

// descendants are the children of a process, and theirs.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range threads {
		data, _ := os.ReadFile(file) // a thread that has just ended has none
		for _, field := range strings.Fields(string(data)) {
			child := 0
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(append(all, child), descendants(t, child)...)
			}
		}
	}
	return all
}
