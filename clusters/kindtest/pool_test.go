//go:build unix

package kindtest

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/pool"
)

// A pause of 40 s is longer than a kubelet believes that its runtime lives without looking at it.
const longPause = 40 * time.Second

func TestPoolClaim(t *testing.T) {
	t.Parallel()
	m, _ := newManager(t)
	p := pool.Start(m, pool.Options{Size: 1, Spec: clusters.Spec{Image: nodeImage(t)}, Progress: func(line string) { t.Log(line) }})
	t.Cleanup(func() {
		p.Close()
		if records, err := m.List(context.WithoutCancel(t.Context())); err != nil || len(records) > 0 {
			t.Errorf("records of a pool that was closed: %v, %v", records, err)
		}
	})
	err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
		return p.Waiting() > 0, nil
	})
	if err != nil {
		t.Fatalf("no cluster waits: %v", err)
	}
	time.Sleep(longPause) // that it passes is what the test is about
	c, pooled, err := p.Claim(t.Context())
	if err != nil || !pooled {
		t.Fatalf("Claim() = %v, pooled %v, %v, want the cluster that waited", c, pooled, err)
	}
	if err := m.Healthy(t.Context(), c); err != nil {
		t.Errorf("Healthy() = %v after the pause", err)
	}
	p.Discard(c.Name)
}
