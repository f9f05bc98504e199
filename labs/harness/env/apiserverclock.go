package env

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// promptly is how long a write takes at most on a machine that serves the API server. 10 ms is usual; on one whose
// disk or processors are taken it is a second and more, and the operator's own writes take as long.
const promptly = 200 * time.Millisecond

// APIServerClock starts a clock that stands still while the API server is slow to take writes: a slow machine must not fail
// the operator. It writes a ConfigMap again and again to find out, and ends with ctx. The returned function reads the clock.
// The ConfigMap is where a graded manager may write nothing, lest it stops the clock.
func APIServerClock(ctx context.Context) (func() time.Duration, error) {
	admin := current.admin
	mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: systemNamespace, GenerateName: "clock-"}}
	if err := admin.Create(ctx, mark); err != nil {
		return nil, fmt.Errorf("start a clock: %w", err)
	}
	clock := &apiServerClock{write: func() error {
		patch := fmt.Sprintf(`{"data":{"now":"%d"}}`, time.Now().UnixNano())
		return admin.Patch(ctx, mark, client.RawPatch(types.MergePatchType, []byte(patch)))
	}}
	go func() {
		clock.run(ctx)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StopTimeout)
		defer cancel()
		_ = admin.Delete(ctx, mark)
	}()
	return clock.read, nil
}

// apiServerClock adds up how long writes take, each of them counted as [promptly] at most.
type apiServerClock struct {
	write  func() error
	served atomic.Int64 // nanoseconds
}

func (c *apiServerClock) run(ctx context.Context) {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	before := time.Now()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		err := c.write()
		now := time.Now()
		if err == nil {
			c.served.Add(int64(min(now.Sub(before), pollInterval+promptly)))
		}
		before = now
	}
}

func (c *apiServerClock) read() time.Duration { return time.Duration(c.served.Load()) }
