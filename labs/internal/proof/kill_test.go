package proof

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/procfs"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// TestKilledCommandLeavesNothing ends `lab watch` while the learner's program runs. The next command works, and after it nothing of
// the killed one is left.
func TestKilledCommandLeavesNothing(t *testing.T) {
	for name, kill := range map[string]func(pid int, children []int){
		"interrupt": func(pid int, _ []int) { _ = syscall.Kill(pid, syscall.SIGINT) },
		"kill":      func(pid int, _ []int) { _ = syscall.Kill(pid, syscall.SIGKILL) },
		"everything but the command": func(pid int, children []int) {
			for _, child := range children {
				_ = syscall.Kill(child, syscall.SIGKILL)
			}
			_ = syscall.Kill(pid, syscall.SIGTERM)
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newRealLab(t)
			l.requireDone(t, l.run(t, "solve", "4"))
			watch := l.command(t, "--cluster=embedded", "watch", "4")
			var output bytes.Buffer
			watch.Stdout, watch.Stderr = &output, &output
			if err := watch.Start(); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- watch.Wait() }()
			var children []int
			for tick := time.NewTicker(50 * time.Millisecond); !slices.ContainsFunc(children, isManager); {
				select {
				case err := <-ended:
					t.Fatalf("lab watch ended by itself: %v\n%s", err, &output)
				case <-tick.C:
					children = descendants(t, watch.Process.Pid)
				}
			}
			kill(watch.Process.Pid, children)
			<-ended //nolint:errcheck // killed, as intended
			if a := l.run(t, "--cluster=embedded", "check", "1"); a.code != exit.OK {
				t.Errorf("the next command has exit code %d\n%s\n%s", a.code, a.stdout, a.stderr)
			}
			if left := processesOf(t, l.root); len(left) > 0 {
				t.Errorf("processes are left: %v", left)
			}
			if left := slices.DeleteFunc(children, func(pid int) bool { return !isManager(pid) }); len(left) > 0 {
				t.Errorf("the learner's program is left: %v", left)
			}
			l.requireDone(t, l.run(t, "status"), "Nothing is running.")
		})
	}
}

// isManager says that a process runs a learner's program.
func isManager(pid int) bool {
	program, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	return strings.HasPrefix(filepath.Base(program), "manager")
}

// descendants are the children of a process, and theirs.
func descendants(t *testing.T, pid int) (all []int) {
	t.Helper()
	for _, p := range processes(t) {
		if stat, err := p.Stat(); err == nil && stat.PPID == pid {
			all = append(append(all, p.PID), descendants(t, p.PID)...)
		}
	}
	return all
}

func processes(t *testing.T) procfs.Procs {
	t.Helper()
	all, err := procfs.AllProcs()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// processesOf lists the processes that run a program from a folder, or name it on their command line.
func processesOf(t *testing.T, dir string) (found []string) {
	t.Helper()
	for _, p := range processes(t) {
		program, _ := p.Executable()
		line, _ := p.CmdLine()
		if text := program + " " + strings.Join(line, " "); strings.Contains(text, dir) {
			found = append(found, fmt.Sprintf("%d: %s", p.PID, text))
		}
	}
	return found
}
