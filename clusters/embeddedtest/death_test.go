//go:build linux

package embeddedtest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/embedded/supervisor"
	"github.com/example/operator-lab/clusters/internal/process"
)

const (
	makeTimeout = 3 * time.Minute
	// endTimeout is what the kernel and a supervisor may take to end everything.
	endTimeout = 10 * time.Second
)

// maker is another process, with a cluster that it made.
type maker struct {
	cmd   *exec.Cmd
	stdin io.Closer
	state string
	plane string
	owned *clusters.Owned
	name  string
}

// startMaker starts a process that makes a cluster.
func startMaker(t *testing.T, keep string) *maker {
	t.Helper()
	e, state := newProvider(t)
	m := &maker{state: state, owned: clusters.NewOwned(state, e)}
	m.cmd = exec.CommandContext(t.Context(), os.Args[0], makeCommand, state, keep)
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
	t.Cleanup(func() { m.remove(t) })
	if err := m.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	stop := time.AfterFunc(makeTimeout, func() { _ = m.cmd.Process.Kill() })
	defer stop.Stop()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no cluster: %v", err)
	}
	m.name = strings.TrimSpace(line)
	m.plane = filepath.Join(clusters.Dir(state, m.name), "control-plane")
	return m
}

// remove ends whatever a failed test left.
func (m *maker) remove(t *testing.T) {
	ctx := context.WithoutCancel(t.Context())
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait() // killed, as intended
	owners, _ := m.owned.List(ctx)
	for _, o := range owners {
		if err := m.owned.Delete(ctx, o.Name); err != nil {
			t.Error(err)
		}
	}
}

// processes are the supervisor and the programs of the cluster.
func (m *maker) processes(t *testing.T) []process.ID {
	t.Helper()
	ids := m.recorded(t)
	if left := running(ids); len(left) != 6 {
		t.Fatalf("processes %v run, want a supervisor and five programs", left)
	}
	return ids
}

// recorded are the supervisor and the programs that it has written down.
func (m *maker) recorded(t *testing.T) []process.ID {
	t.Helper()
	s, err := supervisor.ReadState(m.plane)
	if err != nil {
		t.Fatal(err)
	}
	return s.Processes()
}

func running(ids []process.ID) []process.ID {
	return slices.DeleteFunc(slices.Clone(ids), func(id process.ID) bool { return !id.Alive() })
}

// awaitEnd fails the test when a process is left.
func awaitEnd(t *testing.T, ids []process.ID) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func() []process.ID { return running(ids) }).
		WithTimeout(endTimeout).Should(gomega.BeEmpty(), "processes that are left")
}

func TestNothingOutlivesAMakerThatWasKilled(t *testing.T) {
	m := startMaker(t, "")
	ids := m.processes(t)
	if err := m.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = m.cmd.Wait() // killed, as intended
	awaitEnd(t, ids)
	if _, err := os.Stat(m.plane); err == nil {
		t.Errorf("%s is left", m.plane)
	}
	swept, err := m.owned.Sweep(t.Context())
	if err != nil || !slices.Contains(swept, m.name) {
		t.Errorf("Sweep() = %v, %v, want %s", swept, err, m.name)
	}
	if _, err := os.Stat(clusters.Dir(m.state, m.name)); err == nil {
		t.Errorf("%s is left after the sweep", clusters.Dir(m.state, m.name))
	}
}

func TestNothingOutlivesASupervisorThatWasKilled(t *testing.T) {
	m := startMaker(t, "")
	ids := m.processes(t)
	if err := syscall.Kill(ids[0].PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	awaitEnd(t, ids)
	c := &clusters.Cluster{Name: m.name, Kubeconfig: clusters.Kubeconfig(m.state, m.name), Nodes: 1}
	if err := clusters.Healthy(t.Context(), m.owned.Provider(), c); err == nil || !strings.Contains(err.Error(), "without its processes") {
		t.Errorf("Healthy() = %v, want a problem that names the processes", err)
	}
	if err := m.owned.Delete(t.Context(), m.name); err != nil {
		t.Error(err)
	}
}

func TestAKeptClusterStaysUntilItIsDeleted(t *testing.T) {
	m := startMaker(t, "keep")
	ids := m.processes(t)
	if err := m.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	owners, err := m.owned.List(t.Context())
	if err != nil || len(owners) != 1 {
		t.Fatalf("List() = %v, %v, want the kept cluster", owners, err)
	}
	if o := owners[0]; !o.Kept || o.PID != ids[0].PID {
		t.Errorf("owner = %+v, want it kept by the living supervisor %v", o, ids[0])
	}
	if swept, err := m.owned.Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("Sweep() = %v, %v, want the kept cluster left alone", swept, err)
	}
	if err := clusters.Healthy(t.Context(), m.owned.Provider(), owners[0].Cluster); err != nil {
		t.Errorf("Healthy() = %v after its maker has gone", err)
	}
	if err := m.owned.Delete(t.Context(), m.name); err != nil {
		t.Fatal(err)
	}
	if left := running(ids); len(left) > 0 {
		t.Errorf("processes %v are left after the deletion", left)
	}
}

// runningCluster makes a cluster, which the test's end deletes, and reads which programs it is made of.
func runningCluster(t *testing.T) (*embedded.Embedded, *clusters.Cluster, supervisor.State) {
	t.Helper()
	e, state := newProvider(t)
	owned := clusters.NewOwned(state, e)
	c, err := owned.Create(t.Context(), "test", clusters.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owned.Delete(context.WithoutCancel(t.Context()), c.Name); err != nil {
			t.Error(err)
		}
	})
	s, err := supervisor.ReadState(filepath.Join(clusters.Dir(state, c.Name), "control-plane"))
	if err != nil {
		t.Fatal(err)
	}
	return e, c, s
}

func TestAClusterWithoutEtcdIsNotHealthy(t *testing.T) {
	e, c, s := runningCluster(t)
	// Stopped, it is still there, and that is what the API server has to notice.
	if err := syscall.Kill(s.Program("etcd").Process.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := clusters.Healthy(t.Context(), e, c); err == nil || !strings.Contains(err.Error(), "not ready") {
		t.Errorf("Healthy() = %v, want a problem of the API server", err)
	}
}

func TestAProgramThatWasKilledIsBackAndNotForgotten(t *testing.T) {
	e, c, s := runningCluster(t)
	if starts := etcdStarts(t, e, c); starts != 1 {
		t.Fatalf("etcd was started %d times, want once", starts)
	}
	if err := syscall.Kill(s.Program("etcd").Process.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		return etcdStarts(t, e, c) == 2 && clusters.Healthy(t.Context(), e, c) == nil
	}).WithTimeout(endTimeout).Should(gomega.BeTrue(), "etcd is started again")
}

func etcdStarts(t *testing.T, p clusters.NodeInspector, c *clusters.Cluster) int {
	t.Helper()
	nodes, err := p.Nodes(t.Context(), c.Name)
	if err != nil || len(nodes) != 1 {
		t.Fatalf("Nodes() = %v, %v, want one", nodes, err)
	}
	return nodes[0].Starts["etcd"]
}
