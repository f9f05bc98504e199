//go:build linux

package embeddedtest

import (
	"bufio"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
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
	out   io.Reader
	state string
	dir   string // of the cluster
	name  string
}

// startMaker starts a process that makes a cluster, and waits until it has.
func startMaker(t *testing.T, lease bool) *maker {
	t.Helper()
	m := launchMaker(t, lease)
	m.await(t)
	if ids := processes(t, m.dir); len(ids) != 6 {
		t.Fatalf("processes %v run, want a supervisor and five programs", ids)
	}
	return m
}

// launchMaker starts a process that makes a cluster.
func launchMaker(t *testing.T, lease bool) *maker {
	t.Helper()
	own, state := manager(t)
	return launchMakerIn(t, own, state, lease)
}

func launchMakerIn(t *testing.T, own *clusters.Manager, state string, lease bool) *maker {
	t.Helper()
	m := &maker{Manager: own, state: state, cmd: exec.CommandContext(t.Context(), os.Args[0], makeCommand, state, strconv.FormatBool(lease))}
	m.cmd.Stderr = os.Stderr
	stdin, err := m.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	m.stdin = stdin
	m.out, err = m.cmd.StdoutPipe()
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
	return m
}

// await waits until the process has its cluster.
func (m *maker) await(t *testing.T) {
	t.Helper()
	line, err := bufio.NewReader(m.out).ReadString('\n')
	if err != nil {
		t.Fatalf("no cluster: %v", err)
	}
	m.name = strings.TrimSpace(line)
	m.dir = filepath.Dir(m.Kubeconfig(m.name))
}

// kill ends the process at once.
func (m *maker) kill(t *testing.T) {
	t.Helper()
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.cmd.Wait() // killed, as intended
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

// moments is how many moments of a creation, which takes 3 s, are tried.
const moments = 10

func TestMakerKilled(t *testing.T) {
	neighbour := startMaker(t, false)
	for i := range moments {
		moment := time.Duration(i)*300*time.Millisecond + rand.N(300*time.Millisecond)
		t.Run(moment.String(), func(t *testing.T) {
			m := launchMaker(t, false)
			time.Sleep(moment) // the moment is what is tested
			m.kill(t)
			awaitEnd(t, m.state)
			if _, err := m.Sweep(t.Context()); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(m.state, "clusters", "[a-z]*")); len(left) > 0 {
				t.Errorf("left after the sweep: %v", left)
			}
		})
	}
	c := &clusters.Cluster{Name: neighbour.name, Kubeconfig: neighbour.Kubeconfig(neighbour.name), Nodes: 1}
	if err := neighbour.Healthy(t.Context(), c); err != nil {
		t.Errorf("the neighbour's cluster: %v", err)
	}
}

// Two processes have one cluster. It outlives its maker, and ends with the last of them.
func TestLeaseOutlivesMaker(t *testing.T) {
	first := startMaker(t, true)
	second := launchMakerIn(t, first.Manager, first.state, true)
	second.await(t)
	if second.name != first.name {
		t.Fatalf("clusters %s and %s, want one", first.name, second.name)
	}
	first.kill(t)
	if swept, err := first.Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("Sweep() = %v, %v while the cluster is used", swept, err)
	}
	c := &clusters.Cluster{Name: first.name, Kubeconfig: first.Kubeconfig(first.name), Nodes: 1}
	if err := first.Healthy(t.Context(), c); err != nil {
		t.Errorf("after the end of the maker: %v", err)
	}
	_ = second.stdin.Close()
	if err := second.cmd.Wait(); err != nil {
		t.Error(err)
	}
	awaitEnd(t, first.state)
}

// A program that ends takes the others along: what was seen on such a cluster says nothing about anybody.
func TestProcessKilled(t *testing.T) {
	for _, program := range []string{filepath.Base(os.Args[0]), "etcd"} {
		t.Run(program, func(t *testing.T) {
			m := startMaker(t, false)
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
