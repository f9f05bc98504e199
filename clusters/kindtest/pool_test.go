//go:build unix

package kindtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/clusters/pool"
)

const (
	// fillLimit is how long a pool may take to have its cluster.
	fillLimit = 3 * time.Minute
	// lookPeriod is how often a test looks at what it waits for.
	lookPeriod = 200 * time.Millisecond
)

// pauses are for how long clusters wait: one is longer than a kubelet believes that its runtime lives without
// looking at it. POOL_PAUSES=7m,30m tries others.
func pauses(t *testing.T) []time.Duration {
	t.Helper()
	var all []time.Duration
	for text := range strings.SplitSeq(cmp.Or(os.Getenv("POOL_PAUSES"), "10s,40s"), ",") {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	return all
}

func startPool(t *testing.T, kind *clusters.Kind, state string) (*pool.Pool, *clusters.Owned) {
	t.Helper()
	owned := clusters.NewOwned(state, kind)
	p := pool.Start(owned, pool.Options{
		Size: 1, Spec: clusters.Spec{NodeImage: nodeImage(t, kind.Engine())}, Progress: func(line string) { t.Log(line) },
	})
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		if owners, err := owned.List(context.WithoutCancel(t.Context())); err != nil || len(owners) > 0 {
			t.Errorf("records of a pool that was closed: %v, %v", owners, err)
		}
	})
	return p, owned
}

// awaitWaiting returns when a cluster of the pool sleeps, and says which.
func awaitWaiting(t *testing.T, p *pool.Pool, owned *clusters.Owned, kind *clusters.Kind) string {
	t.Helper()
	ctx := t.Context()
	if err := awaitPool(ctx, p); err != nil {
		t.Fatalf("no cluster waits: %v", err)
	}
	owners, err := owned.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range owners {
		if nodes, err := kind.Nodes(ctx, o.Name); err == nil && len(nodes) == 1 && nodes[0].State == "paused" {
			return o.Name
		}
	}
	t.Fatalf("none of %+v is paused", owners)
	return ""
}

// awaitPool returns when a cluster of the pool waits, paused.
func awaitPool(ctx context.Context, p *pool.Pool) error {
	return wait.PollUntilContextTimeout(ctx, lookPeriod, fillLimit, true, func(context.Context) (bool, error) {
		return p.Waiting() > 0, nil
	})
}

func TestAClusterThatWaitedIsReadyWhenItIsClaimed(t *testing.T) {
	kind, state := newKind(t) // not in parallel: the times that it logs are those of one cluster
	p, owned := startPool(t, kind, state)
	for _, pause := range pauses(t) {
		waiting := awaitWaiting(t, p, owned, kind)
		idle(t, kind, waiting)
		time.Sleep(pause) // that it passes is what the test is about
		started := time.Now()
		c, pooled, err := p.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		claimed := time.Since(started)
		if !pooled || c.Name != waiting {
			t.Errorf("claimed %s, pooled %v; want %s, which waited", c.Name, pooled, waiting)
		}
		// After a long pause, a kubelet reports for a moment that it is not ready. That is over when the claim returns.
		if err := clusters.Healthy(t.Context(), kind, c); err != nil {
			t.Errorf("Healthy() = %v after a pause of %v", err, pause)
		}
		t.Logf("after a pause of %v: claimed in %v, a new Pod ran %v later", pause, claimed, runPod(t, c))
		p.Discard(c.Name)
	}
}

// idle fails the test when the engine sees a paused node work.
func idle(t *testing.T, kind *clusters.Kind, cluster string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), kind.Engine(), "stats", "--no-stream", "--format", "{{.CPUPerc}}", cluster+"-control-plane").Output()
	if err != nil {
		t.Fatalf("ask for the node's processor time: %v", err)
	}
	if used := strings.TrimSpace(string(out)); used != "0.00%" {
		t.Errorf("cluster %s uses %s of a processor while it is paused", cluster, used)
	}
}

// runPod runs the operand and says how long it took until the kubelet called it Ready.
func runPod(t *testing.T, c *clusters.Cluster) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	config, err := clusters.RESTConfig(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	started := time.Now()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "probe-", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "memcached", Image: nodeimage.Operand, ImagePullPolicy: corev1.PullNever,
		}}},
	}
	pod, err = client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	err = clusters.WaitForPod(ctx, client, pod.Namespace, pod.Name, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(condition corev1.PodCondition) bool {
			return condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue
		})
	})
	if err != nil {
		t.Fatalf("await the Pod: %v", err)
	}
	return time.Since(started)
}

// poolChild is a child that uses a pool, as `lab watch` does: one cluster is in use and another one waits. It
// says "claimed" and "waiting", and goes on until it is interrupted.
func poolChild(ctx context.Context, owned *clusters.Owned, spec clusters.Spec) error {
	p := pool.Start(owned, pool.Options{Size: 1, Spec: spec, Progress: func(line string) { fmt.Println(line) }})
	c, _, err := p.Claim(ctx)
	if err == nil {
		fmt.Println("claimed")
		if err = awaitPool(ctx, p); err == nil {
			fmt.Println("waiting")
			<-ctx.Done()
		}
		p.Discard(c.Name)
	}
	return errors.Join(err, ctx.Err(), p.Close())
}

// Whenever a command with a pool is killed, the next one removes what it leaves: clusters that are being made, in
// use and paused.
func TestSweepRemovesAPoolWhoseProcessWasKilled(t *testing.T) {
	t.Parallel()
	for _, moment := range []struct {
		line  string
		later time.Duration
		left  int
	}{
		{"Ensuring node image", 700 * time.Millisecond, 1},
		{"claimed", 2 * time.Second, 2},
		{"waiting", time.Second, 2},
	} {
		t.Run("killed after it said "+moment.line, func(t *testing.T) {
			o := startOwner(t, childPool+"=1")
			o.waitFor(t, moment.line)
			o.awaitRecords(t, moment.left) // the pool begins the next cluster when it comes to it
			time.Sleep(moment.later)       // the moment is what is tested
			if err := o.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = o.cmd.Wait() // killed, as intended
			swept, err := o.Sweep(t.Context())
			if err != nil || len(swept) != moment.left {
				t.Errorf("Sweep() = %v, %v, want %d clusters", swept, err, moment.left)
			}
			for _, name := range swept {
				mustBeGone(t, o.kind, name)
			}
			if records := o.records(t); len(records) > 0 {
				t.Errorf("records left: %+v", records)
			}
		})
	}
}

// awaitRecords waits until the child has begun so many clusters: each is recorded before kind is called.
func (o *owner) awaitRecords(t *testing.T, want int) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), lookPeriod, fillLimit, true, func(context.Context) (bool, error) {
		return len(o.records(t)) >= want, nil
	})
	if err != nil {
		t.Fatalf("records = %+v, want %d", o.records(t), want)
	}
}

func TestAnInterruptedPoolLeavesNothing(t *testing.T) {
	t.Parallel()
	o := startOwner(t, childPool+"=1")
	o.waitFor(t, "claimed")
	o.waitFor(t, "waiting")
	records := o.records(t)
	o.signal(t, syscall.SIGTERM)
	for _, record := range records {
		mustBeGone(t, o.kind, record.Name)
	}
	if left := o.records(t); len(left) > 0 || len(records) != 2 {
		t.Errorf("records left: %+v of %+v", left, records)
	}
}
