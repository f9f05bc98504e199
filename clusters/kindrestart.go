package clusters

import (
	"context"
	"fmt"
	"time"
)

// nodeRestartTimeout is what the engine may take to restart the nodes of a cluster: ten seconds to end each,
// and as long again to start it, many times that on a machine that has just booted.
const nodeRestartTimeout = 2 * time.Minute

// Restart ends the node containers, as far as they run, and starts them again. They find their data, and their
// port on the host, where they were; kind's entrypoint adapts to a new address of the node.
func (k *Kind) Restart(ctx context.Context, name string) error {
	list, err := k.existing(ctx, name)
	if err != nil {
		return problem(err, FixCluster, "cannot restart cluster %s", name)
	}
	nodes := namesOf(list)
	ctx, cancel := context.WithTimeoutCause(ctx, nodeRestartTimeout, fmt.Errorf("not done within %v", nodeRestartTimeout))
	defer cancel()
	for _, node := range nodes {
		// Engines refuse to restart what is paused. Most nodes are not, and then this fails.
		_, _ = commandEngine(ctx, k.engine, "unpause", node)
	}
	if _, err := commandEngine(ctx, k.engine, append([]string{"restart"}, nodes...)...); err != nil {
		return problem(err, FixCluster, "cannot restart cluster %s", name)
	}
	return nil
}
