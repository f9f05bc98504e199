package doctor

import (
	"context"
	"fmt"
)

// Resource is something of which a machine has only so much for all its clusters together.
type Resource string

// The resources that end a room of clusters, in the order in which they usually do.
const (
	// Memory and Disk are what is free now, in bytes.
	Memory Resource = "memory"
	Disk   Resource = "disk"
	// Inotify is how many instances one user may have in all, those in use included: only root can count those.
	Inotify Resource = "inotify instances"
	// PIDs is how many more processes and threads may start.
	PIDs Resource = "processes and threads"
	// Ports is how many TCP ports the kernel hands out that are not in use.
	Ports Resource = "ports"
	// BridgePorts is how many containers one network of the engine takes in all.
	BridgePorts Resource = "ports of the engine's bridge"
)

// bridgePorts is BR_MAX_PORTS of the Linux kernel (net/bridge/br_private.h): a bridge with more cannot be had.
const bridgePorts = 1 << 10

// Supply is how much there is of a resource.
type Supply struct {
	// Amount is in bytes, or a number.
	Amount uint64
	// Fix is the command that makes it more, "" where there is none.
	Fix string
}

// Supplies looks at what clusters side by side share. What is not known is not among it. With an engine that has a
// virtual machine of its own, what counts is in there, and a container of the node image looks at it.
func Supplies(ctx context.Context, o Options) map[Resource]Supply {
	return supplies(ctx, o, thisMachine())
}

func supplies(ctx context.Context, o Options, m machine) map[Resource]Supply {
	e := &examination{Options: o.withDefaults(), machine: m, local: m.os == "linux"}
	if !e.NoEngine {
		e.checkEnginesKernel(ctx)
	}
	found := map[Resource]Supply{}
	if n, ok := e.memory(); ok {
		found[Memory] = Supply{Amount: n}
	}
	if n, ok := e.clusterDisk(ctx); ok {
		found[Disk] = Supply{Amount: n}
	}
	if n, ok := e.inotify(); ok {
		found[Inotify] = Supply{n, fixSetup}
	}
	if !e.NoEngine {
		found[BridgePorts] = Supply{Amount: bridgePorts}
	}
	if !e.local {
		return found // the limits of this kernel are not those of the engine's
	}
	if n, what := e.taskLimit(); what != "" {
		found[PIDs] = Supply{n, raiseTasks(what)}
	}
	if n, ok := e.ports(); ok {
		found[Ports] = Supply{n, "sudo sysctl -w net.ipv4.ip_local_port_range='10240 65535'"}
	}
	return found
}

// checkEnginesKernel finds out where the engine's limits are: here, or in a virtual machine that has to be asked.
func (e *examination) checkEnginesKernel(ctx context.Context) {
	if e.findEngine(ctx); e.engine == "" {
		return
	}
	if e.checkEngine(ctx); !e.local {
		e.checkNodeImage(ctx)
	}
}

// clusterDisk is the space where clusters keep their data: with the engine, or in the checkout.
func (e *examination) clusterDisk(ctx context.Context) (uint64, bool) {
	if !e.NoEngine {
		return e.engineDisk(ctx)
	}
	free, err := e.free(e.Root)
	return free, err == nil
}

func (e *examination) inotify() (uint64, bool) {
	if e.inside != nil && e.inside.instances > 0 {
		return e.inside.instances, true
	}
	if !e.local {
		return 0, false
	}
	return e.number("proc/sys/fs/inotify/max_user_instances")
}

// ports is the size of the range that the kernel draws ports from, without the sockets that are in use.
func (e *examination) ports() (uint64, bool) {
	text, ok := e.text("proc/sys/net/ipv4/ip_local_port_range")
	var first, last uint64
	if _, err := fmt.Sscan(text, &first, &last); !ok || err != nil || last < first {
		return 0, false
	}
	used := uint64(0)
	if sockets, ok := e.field("proc/net/sockstat", "TCP"); ok {
		_, _ = fmt.Sscanf(sockets, "inuse %d", &used) // 0 means not known
	}
	all := last - first + 1
	return all - min(all, used), true
}
