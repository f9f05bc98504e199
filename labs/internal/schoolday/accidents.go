//go:build unix

package schoolday

import (
	"context"
	"fmt"
	"strings"
)

// ownEngine is what engine.sh says of an engine that it has started.
const ownEngine = ", started by this script"

// killNode kills the node of the second learner's cluster, as the kernel does it that runs out of memory.
func (d *day) killNode(ctx context.Context) error {
	if d.Cluster != "kind" {
		return nil
	}
	victim := d.learners[min(1, len(d.learners)-1)]
	d.say("the node of %s is killed", victim.ID)
	if err := d.succeed(ctx, "node-killed", "docker kill "+victim.Cluster+"-control-plane"); err != nil {
		return err
	}
	if victim.opens() == nil {
		return fmt.Errorf("the cluster of %s answers although its node was killed", victim.ID)
	}
	return nil
}

// restartEngine stops the container engine, with everything in it, and starts it again. One that this project did not
// start belongs to somebody else, and goes on.
func (d *day) restartEngine(ctx context.Context) error {
	if d.Cluster != "kind" {
		return nil
	}
	status, err := d.shell(ctx, "engine-status", "scripts/engine.sh status 2>&1")
	if err != nil {
		return err
	}
	if status.code != 0 || !strings.Contains(status.output, ownEngine) {
		d.say("the engine is not ours and is left alone: %s", strings.TrimSpace(status.output))
		return nil
	}
	d.say("the engine is restarted")
	return d.succeed(ctx, "engine-restarted", "scripts/engine.sh stop && scripts/engine.sh start")
}
