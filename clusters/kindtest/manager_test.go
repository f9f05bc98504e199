//go:build unix

package kindtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
)

// The environment of a child: this test binary again, which then makes one
// cluster, says what it is about to do and at last "done", and ends.
const (
	childState = "KINDTEST_STATE"
	childImage = "KINDTEST_IMAGE"
	childKeep  = "KINDTEST_KEEP"
	childName  = "KINDTEST_NAME"  // of the cluster
	childSweep = "KINDTEST_SWEEP" // only sweep, and say what was swept
)

// interrupted is the child's exit code when its error says that it was
// cancelled.
const interrupted = 130

func TestMain(m *testing.M) {
	if state := os.Getenv(childState); state != "" {
		if err := child(state); err != nil {
			fmt.Println(err)
			if errors.Is(err, context.Canceled) {
				os.Exit(interrupted)
			}
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func child(state string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	m, err := clusters.New(state, clusters.WithEngine(engineName()), clusters.WithLogger(func(line string) { fmt.Println(line) }))
	if err != nil {
		return err
	}
	spec := clusters.Spec{Name: os.Getenv(childName), Image: os.Getenv(childImage), Keep: os.Getenv(childKeep) != ""}
	if os.Getenv(childSweep) != "" {
		swept, err := m.Sweep(ctx)
		fmt.Println("swept", swept)
		return err
	}
	_, err = m.Create(ctx, spec)
	if err == nil {
		fmt.Println("done")
	}
	return err
}

// owner is a child process and the clusters of its state directory.
type owner struct {
	*clusters.Manager
	cmd    *exec.Cmd
	output *bufio.Scanner
	state  string
}

// startOwner starts a child, in a process group of its own as a shell would.
func startOwner(t *testing.T, env ...string) *owner {
	t.Helper()
	m, state := newManager(t)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childState+"="+state, childImage+"="+nodeImage(t))
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o := &owner{m, cmd, bufio.NewScanner(stdout), state}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // most have ended by now
		for _, record := range o.records(t) {
			if err := o.Delete(context.WithoutCancel(t.Context()), record.Name); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

func (o *owner) records(t *testing.T) []clusters.Record {
	t.Helper()
	records, err := o.List(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// waitFor returns when the child says so.
func (o *owner) waitFor(t *testing.T, line string) {
	t.Helper()
	for o.output.Scan() {
		if strings.Contains(o.output.Text(), line) {
			return
		}
		t.Log("child: " + o.output.Text())
	}
	t.Fatalf("the child ended before it said %q", line)
}

// waitForRecord returns the name of the cluster that the child began to make: it is
// recorded before kind is called.
func (o *owner) waitForRecord(t *testing.T) string {
	t.Helper()
	o.waitFor(t, "Ensuring node image")
	records := o.records(t)
	if len(records) != 1 {
		t.Fatalf("records = %+v, want that of the cluster which the child makes", records)
	}
	return records[0].Name
}

// signal sends a signal to the whole process group, as a terminal does, and
// waits for the child's end.
func (o *owner) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(-o.cmd.Process.Pid, s); err != nil {
		t.Fatal(err)
	}
	for o.output.Scan() {
		t.Log("child: " + o.output.Text())
	}
	err := o.cmd.Wait()
	if failed, ok := errors.AsType[*exec.ExitError](err); !ok || failed.ExitCode() != interrupted {
		t.Errorf("the child ended with %v after %v, want an error that says that it was cancelled", err, s)
	}
}

func TestSignalsLeaveNothing(t *testing.T) {
	t.Parallel()
	moments := map[syscall.Signal][]time.Duration{
		syscall.SIGINT:  {50 * time.Millisecond, 700 * time.Millisecond, 2 * time.Second, 6 * time.Second},
		syscall.SIGTERM: {1500 * time.Millisecond},
	}
	for s, after := range moments {
		for _, moment := range after {
			t.Run(fmt.Sprintf("%v after %v", s, moment), func(t *testing.T) {
				o := startOwner(t)
				name := o.waitForRecord(t)
				time.Sleep(moment) // the moment is what is tested
				o.signal(t, s)
				mustBeGone(t, o.Manager, name)
				if records := o.records(t); len(records) > 0 {
					t.Errorf("records left: %+v", records)
				}
			})
		}
	}
}

// moments is how many moments of a creation, which takes about 12 s, are tried.
const moments = 10

func TestSweepAfterKill(t *testing.T) {
	t.Parallel()
	neighbour := startOwner(t)
	neighbours := neighbour.waitForRecord(t)
	neighbour.waitFor(t, "Writing configuration") // of nodes that exist
	for i := range moments {
		moment := time.Duration(i)*1200*time.Millisecond + rand.N(1200*time.Millisecond)
		t.Run(moment.String(), func(t *testing.T) {
			o := startOwner(t)
			name := o.waitForRecord(t)
			time.Sleep(moment) // the moment is what is tested
			// The process alone: what it started goes on, as it would.
			if err := o.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = o.cmd.Wait() // killed, as intended
			swept, err := o.Sweep(t.Context())
			if err != nil || !slices.Equal(swept, []string{name}) {
				t.Errorf("Sweep() = %v, %v, want %s", swept, err, name)
			}
			mustBeGone(t, o.Manager, name)
			if left, _ := filepath.Glob(filepath.Join(o.state, "clusters", "[a-z]*")); len(left) > 0 {
				t.Errorf("left after the sweep: %v", left)
			}
		})
	}
	if nodes, err := neighbour.Provider().Nodes(t.Context(), neighbours); err != nil || len(nodes) != 1 || !nodes[0].Running {
		t.Errorf("the neighbour's cluster: %+v, %v", nodes, err)
	}
}

func TestSweepSparesLivingOwner(t *testing.T) {
	t.Parallel()
	o := startOwner(t)
	name := o.waitForRecord(t)
	o.waitFor(t, "Writing configuration")                                                               // of nodes that exist
	sweep := exec.CommandContext(t.Context(), "unshare", "--pid", "--fork", "--mount-proc", os.Args[0]) // as in a dev container
	sweep.Env = append(o.cmd.Env, childSweep+"=1")
	if out, err := sweep.CombinedOutput(); err != nil || string(out) != "swept []\n" {
		t.Errorf("Sweep() from another PID namespace while the owner lives: %s, %v", out, err)
	}
	if names, err := o.Provider().List(t.Context()); err != nil || !slices.Contains(names, name) {
		t.Errorf("List() = %v, %v after the sweep, want %s still there", names, err, name)
	}
	o.signal(t, syscall.SIGTERM)
	mustBeGone(t, o.Manager, name)
}

// Names are the engine's, and nobody else knows of both state folders.
func TestNameInTwoStateFolders(t *testing.T) {
	t.Parallel()
	name := clusters.NewName("two")
	owners := []*owner{startOwner(t, childName+"="+name), startOwner(t, childName+"="+name)}
	var winner *owner
	for _, o := range owners {
		var last string
		for o.output.Scan() {
			last = o.output.Text()
			t.Log("child: " + last)
		}
		switch err := o.cmd.Wait(); {
		case err == nil && winner == nil:
			winner = o
		case err == nil:
			t.Error("both made the cluster")
		case !strings.Contains(last, clusters.ErrExists.Error()):
			t.Errorf("the other one says %q, want that the name is taken", last)
		}
	}
	if winner == nil {
		t.Fatal("nobody made the cluster")
	}
	records := winner.records(t)
	if len(records) != 1 || records[0].Cluster == nil {
		t.Fatalf("records = %+v, want that of the cluster", records)
	}
	if err := winner.Healthy(t.Context(), records[0].Cluster); err != nil {
		t.Errorf("Healthy() = %v, want the winner's cluster alive", err)
	}
	if err := winner.Delete(t.Context(), name); err != nil {
		t.Error(err)
	}
}

func TestKeptCluster(t *testing.T) {
	t.Parallel()
	o := startOwner(t, childKeep+"=1")
	o.waitFor(t, "done")
	if err := o.cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	records := o.records(t)
	if len(records) != 1 || !records[0].Kept || records[0].Cluster == nil {
		t.Fatalf("records = %+v, want one kept cluster", records)
	}
	if swept, err := o.Sweep(t.Context()); err != nil || len(swept) > 0 {
		t.Errorf("Sweep() = %v, %v, want the kept cluster left alone", swept, err)
	}
	c := records[0].Cluster
	if err := o.Healthy(t.Context(), c); err != nil {
		t.Errorf("Healthy() = %v after the owner's end", err)
	}
	t.Run("a paused node is told from a healthy one", func(t *testing.T) { pausedNode(t, o.Manager, c) })
	t.Run("a node that is gone is noticed", func(t *testing.T) { removedNode(t, o.Manager, c) })
	if err := o.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
	mustBeGone(t, o.Manager, c.Name)
}

func pausedNode(t *testing.T, m *clusters.Manager, c *clusters.Cluster) {
	node := c.Name + "-control-plane"
	engine(t, "pause", node)
	err := m.Healthy(t.Context(), c)
	engine(t, "unpause", node)
	if !errors.Is(err, clusters.ErrBroken) || !strings.Contains(err.Error(), "paused") {
		t.Errorf("Healthy() = %v, want a *Problem that says that the node is paused", err)
	}
	if err := m.Healthy(t.Context(), c); err != nil {
		t.Errorf("Healthy() = %v after the pause", err)
	}
}

func removedNode(t *testing.T, m *clusters.Manager, c *clusters.Cluster) {
	engine(t, "rm", "-f", "-v", c.Name+"-control-plane")
	err := m.Healthy(t.Context(), c)
	if !errors.Is(err, clusters.ErrBroken) || !strings.Contains(err.Error(), "0 of its 1 nodes") {
		t.Errorf("Healthy() = %v, want a *Problem that says that the node is gone", err)
	}
}

func engine(t *testing.T, args ...string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), engineName(), args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", engineName(), args, err, out)
	}
}
