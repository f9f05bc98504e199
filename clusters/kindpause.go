package clusters

import (
	"context"
	"time"
)

var _ Pauser = (*Kind)(nil)

// pauseAttempts is how often a pause is tried: the freezer of cgroup v1 can fail to catch the processes of a
// node that is busy starting others.
const pauseAttempts = 3

// Pause freezes the node containers of the cluster.
func (k *Kind) Pause(ctx context.Context, name string) error {
	return k.freeze(ctx, name, "pause", pauseAttempts)
}

// Resume thaws them.
func (k *Kind) Resume(ctx context.Context, name string) error {
	return k.freeze(ctx, name, "unpause", 1)
}

func (k *Kind) freeze(ctx context.Context, name, verb string, attempts int) error {
	nodes, err := k.existing(ctx, name)
	if err != nil {
		return problem(err, FixCluster, "cannot %s cluster %s", verb, name)
	}
	err = retry(ctx, attempts, 500*time.Millisecond, func() error {
		_, err := runEngine(ctx, k.engine, append([]string{verb}, namesOf(nodes)...)...)
		return err
	})
	if err != nil {
		return problem(err, FixCluster, "cannot %s cluster %s", verb, name)
	}
	return nil
}
