//go:build linux

package faulttest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/setup/private"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// holdInotify makes this test binary a holder: it takes all inotify instances that root can still have,
// says so, and keeps them until its standard input ends.
const holdInotify = "FAULTTEST_HOLD_INOTIFY"

func TestMain(m *testing.M) {
	if os.Getenv(holdInotify) != "" {
		hold()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func hold() {
	n := 0
	for {
		if _, err := unix.InotifyInit1(unix.IN_CLOEXEC); err != nil {
			break
		}
		n++
	}
	// The same error means that this process has too many open files.
	_, err := os.Open(os.DevNull)
	fmt.Println(n, err == nil)
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// exhaustInotify takes all inotify instances of root, who runs the nodes, until release is called. If this
// test dies, the kernel gives them back.
func exhaustInotify(t *testing.T) (release func()) {
	t.Helper()
	var holders []func()
	release = func() {
		for _, end := range holders {
			end()
		}
	}
	for range 16 {
		taken, all, end := startHolder(t)
		holders = append(holders, end)
		t.Logf("took %d inotify instances", taken)
		if all {
			return release
		}
	}
	release()
	t.Fatal("inotify instances do not run out")
	return nil
}

func startHolder(t *testing.T) (taken int, all bool, end func()) {
	t.Helper()
	command := []string{"env", holdInotify + "=1", os.Args[0]}
	if os.Geteuid() != 0 {
		command = append([]string{"sudo"}, command...)
	}
	cmd := exec.Command(command[0], command[1:]...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	end = func() {
		stdin.Close()
		_ = cmd.Wait()
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err == nil {
		_, err = fmt.Sscan(line, &taken, &all)
	}
	if err != nil {
		end()
		t.Fatalf("the holder said %q: %v", line, err)
	}
	return taken, all, end
}

// squeeze gives the node hardly more memory than it uses, so that the kernel has to kill programs in it. A node at work
// grows meanwhile; where cgroups are of version 1, the engine refuses a limit below what is used by then, and another one
// has to be found.
func squeeze(t *testing.T, b *fixture) {
	t.Helper()
	node := b.current(t).Name + "-control-plane"
	const usage = "cat /sys/fs/cgroup/memory/memory.usage_in_bytes 2>/dev/null || cat /sys/fs/cgroup/memory.current"
	for started := time.Now(); ; {
		used, err := strconv.Atoi(b.engine.Docker("exec", node, "sh", "-c", usage))
		if err != nil {
			t.Fatal(err)
		}
		limit := strconv.Itoa(used + 8<<20)
		_, err = b.engine.TryDocker("update", "--memory", limit, "--memory-swap", limit, node)
		if err == nil {
			return
		}
		if !strings.Contains(err.Error(), "unable to set memory limit") || time.Since(started) > squeezeLimit {
			t.Fatal(err)
		}
		t.Log(err)
	}
}

// TestACompilationThatFillsTheDiskIsTheMachines gives the Go command a folder for temporary files that is
// smaller than what it makes.
func TestACompilationThatFillsTheDiskIsTheMachines(t *testing.T) {
	small := private.New(t, root)
	small.Limit("48m")
	small.AsRoot("chmod", "1777", small.Data())
	t.Setenv("TMPDIR", small.Data())
	build, err := verdict.BuildManager(t.Context(), coursetest.Stage(t, coursetest.Load(t, root), lab), filepath.Join(small.Data(), "manager"))
	problem, ok := errors.AsType[*clusters.Problem](err)
	if build != nil || !ok || !strings.Contains(problem.What, "temporary files") || !strings.Contains(problem.Fix, "TMPDIR") {
		t.Errorf("the build gives %+v, %v, want that there is no room for temporary files", build, err)
	}
	t.Log(err)
}
