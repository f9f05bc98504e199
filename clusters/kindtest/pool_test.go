//go:build unix

package kindtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/operator-lab/clusters"
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

func startPool(t *testing.T, m *clusters.Manager) *pool.Pool {
	t.Helper()
	p := pool.Start(m, pool.Options{
		Size: 1, Spec: clusters.Spec{Image: nodeImage(t)}, Progress: func(line string) { t.Log(line) },
	})
	t.Cleanup(func() {
		p.Close()
		if records, err := m.List(context.WithoutCancel(t.Context())); err != nil || len(records) > 0 {
			t.Errorf("records of a pool that was closed: %v, %v", records, err)
		}
	})
	return p
}

// awaitWaiting returns when a cluster of the pool sleeps, and says which.
func awaitWaiting(t *testing.T, p *pool.Pool, m *clusters.Manager) string {
	t.Helper()
	ctx := t.Context()
	if err := awaitPool(ctx, p); err != nil {
		t.Fatalf("no cluster waits: %v", err)
	}
	records, err := m.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range records {
		if nodes, err := m.Provider().Nodes(ctx, o.Name); err == nil && len(nodes) == 1 && nodes[0].State == "paused" {
			return o.Name
		}
	}
	t.Fatalf("none of %+v is paused", records)
	return ""
}

// awaitPool returns when a cluster of the pool waits, paused.
func awaitPool(ctx context.Context, p *pool.Pool) error {
	return wait.PollUntilContextTimeout(ctx, lookPeriod, fillLimit, true, func(context.Context) (bool, error) {
		return p.Waiting() > 0, nil
	})
}

func TestPoolClaim(t *testing.T) {
	t.Parallel()
	m, _ := newManager(t)
	p := startPool(t, m)
	for _, pause := range pauses(t) {
		waiting := awaitWaiting(t, p, m)
		time.Sleep(pause) // that it passes is what the test is about
		c, pooled, err := p.Claim(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if !pooled || c.Name != waiting {
			t.Errorf("claimed %s, pooled %v; want %s, which waited", c.Name, pooled, waiting)
		}
		// After a long pause, a kubelet reports for a moment that it is not ready. That is over when the claim returns.
		if err := m.Healthy(t.Context(), c); err != nil {
			t.Errorf("Healthy() = %v after a pause of %v", err, pause)
		}
		p.Discard(c.Name)
	}
}

// poolChild is a child that uses a pool, as `lab watch` does: one cluster is in use and another one waits. It
// says "claimed" and "waiting", and goes on until it is interrupted.
func poolChild(ctx context.Context, m *clusters.Manager, spec clusters.Spec) error {
	p := pool.Start(m, pool.Options{Size: 1, Spec: spec, Progress: func(line string) { fmt.Println(line) }})
	c, _, err := p.Claim(ctx)
	if err == nil {
		fmt.Println("claimed")
		if err = awaitPool(ctx, p); err == nil {
			fmt.Println("waiting")
			<-ctx.Done()
		}
		p.Discard(c.Name)
	}
	p.Close()
	return errors.Join(err, ctx.Err())
}

func TestPoolInterrupted(t *testing.T) {
	t.Parallel()
	o := startOwner(t, childPool+"=1")
	o.waitFor(t, "claimed")
	o.waitFor(t, "waiting")
	records := o.records(t)
	o.signal(t, syscall.SIGTERM)
	for _, record := range records {
		mustBeGone(t, o.Manager, record.Name)
	}
	if left := o.records(t); len(left) > 0 || len(records) != 2 {
		t.Errorf("records left: %+v of %+v", left, records)
	}
}
