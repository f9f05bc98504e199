//go:build linux

package embeddedtest

import (
	"bufio"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/clusters"
)

// endTimeout is what the kernel and a supervisor may take to end everything.
const endTimeout = 10 * time.Second

// maker is another process, with a cluster that it made.
type maker struct {
	*clusters.Manager
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string // of the cluster
	name  string
}

// startMaker starts a process that makes a cluster.
func startMaker(t *testing.T, keep string) *maker {
	t.Helper()
	own, state := manager(t)
	m := &maker{Manager: own, cmd: exec.CommandContext(t.Context(), os.Args[0], makeCommand, state, keep)}
	m.cmd.Stderr = os.Stderr
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.stdin = stdin
	out, err := m.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = m.cmd.Process.Kill()
		_ = m.cmd.Wait() // killed, as intended
		records, _ := m.List(context.WithoutCancel(t.Context()))
		for _, r := range records {
			if err := m.Delete(context.WithoutCancel(t.Context()), r.Name); err != nil {
				t.Error(err)
			}
		}
	})
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no cluster: %v", err)
	}
	m.name = strings.TrimSpace(line)
	m.dir = filepath.Dir(m.Kubeconfig(m.name))
	if ids := processes(t, m.dir); len(ids) != 6 {
		t.Fatalf("processes %v run, want a supervisor and five programs", ids)
	}
	return m
}

// processes are the programs that work in a folder, by their number, the supervisor included.
func processes(t *testing.T, dir string) map[int]string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	ids := map[int]string{}
	for _, link := range links {
		at, err := os.Readlink(link)
		if err != nil || !strings.HasPrefix(at, dir+"/") {
			continue
		}
		id, err := strconv.Atoi(filepath.Base(filepath.Dir(link)))
		if err != nil {
			t.Fatal(err)
		}
		program, _ := os.Readlink(filepath.Join(filepath.Dir(link), "exe"))
		ids[id] = filepath.Base(program)
	}
	return ids
}

// kill sends a signal to the process of that program.
func kill(t *testing.T, dir, program string, sig syscall.Signal) {
	t.Helper()
	for id, name := range processes(t, dir) {
		if name == program {
			if err := syscall.Kill(id, sig); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("%s does not run", program)
}

// awaitEnd fails the test when a process is left.
func awaitEnd(t *testing.T, dir string) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func() map[int]string { return processes(t, dir) }).
		WithTimeout(endTimeout).Should(gomega.BeEmpty(), "processes that are left")
}

func TestMakerKilled(t *testing.T) {
	m := startMaker(t, "")
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.cmd.Wait() // killed, as intended
	awaitEnd(t, m.dir)
	swept, err := m.Sweep(t.Context())
	if err != nil || !slices.Contains(swept, m.name) {
		t.Errorf("Sweep() = %v, %v, want %s", swept, err, m.name)
	}
	if _, err := os.Stat(m.dir); err == nil {
		t.Errorf("%s is left after the sweep", m.dir)
	}
}

// A program that ends takes the others along: what was seen on such a cluster says nothing about anybody.
func TestProcessKilled(t *testing.T) {
	for _, program := range []string{filepath.Base(os.Args[0]), "etcd"} {
		t.Run(program, func(t *testing.T) {
			m := startMaker(t, "")
			kill(t, m.dir, program, syscall.SIGKILL)
			awaitEnd(t, m.dir)
			c := &clusters.Cluster{Name: m.name, Kubeconfig: m.Kubeconfig(m.name), Nodes: 1}
			gomega.NewWithT(t).Eventually(func() error { return m.Healthy(t.Context(), c) }).WithTimeout(endTimeout).Should(
				gomega.And(gomega.MatchError(clusters.ErrBroken), gomega.MatchError(gomega.ContainSubstring("without its processes"))))
			logs := t.TempDir()
			if err := m.Provider().CollectLogs(t.Context(), m.name, logs); err != nil {
				t.Error(err)
			}
			text, err := os.ReadFile(filepath.Join(logs, "supervisor.log"))
			if want := "etcd ended: signal: killed"; err != nil || program == "etcd" && !strings.Contains(string(text), want) {
				t.Errorf("the supervisor's log is %q, %v, want %q", text, err, want)
			}
			if err := m.Delete(t.Context(), m.name); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestKeptCluster(t *testing.T) {
	m := startMaker(t, "keep")
	if err := m.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	records, err := m.List(t.Context())
	if err != nil || len(records) != 1 || !records[0].Kept {
		t.Fatalf("List() = %v, %v, want the kept cluster", records, err)
	}
	if swept, err := m.Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("Sweep() = %v, %v, want the kept cluster left alone", swept, err)
	}
	if err := m.Healthy(t.Context(), records[0].Cluster); err != nil {
		t.Errorf("Healthy() = %v after its maker has gone", err)
	}
	if err := m.Delete(t.Context(), m.name); err != nil {
		t.Fatal(err)
	}
	if left := processes(t, m.dir); len(left) > 0 {
		t.Errorf("processes %v are left after the deletion", left)
	}
}

func TestStoppedEtcdIsNoticed(t *testing.T) {
	m, _ := manager(t)
	c := create(t, m, clusters.Spec{})
	kill(t, filepath.Dir(c.Kubeconfig), "etcd", syscall.SIGSTOP)
	if err := m.Healthy(t.Context(), c); !errors.Is(err, clusters.ErrBroken) {
		t.Errorf("Healthy() = %v, want ErrBroken", err)
	}
}
