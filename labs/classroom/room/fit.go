package room

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/example/operator-lab/clusters/doctor"
)

const (
	mega = 1 << 20
	giga = 1 << 30
)

// Cost is what one cluster takes of each resource.
type Cost map[doctor.Resource]uint64

// KindCost is what a kind cluster of one node takes.
func KindCost() Cost {
	return Cost{
		// The promise for an idle cluster of ours, which the benchmark measures (docs/performance.md): 370 to 540 MiB
		// were seen before it was tuned.
		doctor.Memory: 450 * mega,
		// The data of etcd, logs and the learner's images, on the locally built node image, whose large files stay in
		// the image (recipe/provision.sh).
		doctor.Disk:    150 * mega,
		doctor.Inotify: doctor.InotifyPerCluster,
		// Processes and threads of a node, measured for the doctor.
		doctor.PIDs: 330,
		// That of the API server on the host; the rest stays inside.
		doctor.Ports: 1,
		// A node is one container on the network that all clusters share.
		doctor.BridgePorts: 1,
	}
}

// CopyingDisk is what a cluster takes of the disk on a node image that keeps everything below /var, as kind's own
// does: each node copies it. 0.7 GB were measured.
const CopyingDisk = 700 * mega

// EmbeddedCost is what an embedded control plane takes.
func EmbeddedCost() Cost {
	return Cost{
		// 485 MB were resident after the start of etcd, API server, controller manager and scheduler. kwok and the
		// supervisor come on top, and garbage is collected late (memory in embedded/programs.go).
		doctor.Memory: 600 * mega,
		// The data of etcd, which begins with 64 MB of log, and the logs.
		doctor.Disk: 150 * mega,
		// Five programs, of which two watch their certificates. Estimated.
		doctor.Inotify: 8,
		// Five Go programs with about fifteen threads each, and their supervisor. Estimated.
		doctor.PIDs: 100,
		// Four that listen, and the connections between the programs over loopback. Estimated.
		doctor.Ports: 64,
	}
}

// reserve is what is left to everything else on the machine: it never goes to clusters.
func reserve() Cost {
	return Cost{
		// A board, a browser, and somebody who compiles an operator.
		doctor.Memory: giga,
		// Images of learners, and the results of a day.
		doctor.Disk:        2 * giga,
		doctor.PIDs:        500,
		doctor.Ports:       1000,
		doctor.BridgePorts: 24, // 1001 are the most that anybody is known to have had (moby #44973)
	}
}

// Population is what is there already.
type Population struct {
	// Running clusters of the room have all that they need.
	Running int
	// Stopped ones have their disk, and will want everything else.
	Stopped int
	// Others run beside the room, on the same engine.
	Others int
}

// settled is how many clusters a supply need not be asked for any more; below zero, how many others share it.
func (p Population) settled(resource doctor.Resource) int {
	switch resource {
	case doctor.Inotify, doctor.BridgePorts: // supplies that count what is in use
		return -p.Others
	case doctor.Disk:
		return p.Running + p.Stopped
	default:
		return p.Running
	}
}

// Shortage says for how many clusters in all there is enough of a resource, when there is not for all.
type Shortage struct {
	Resource doctor.Resource
	Supply   doctor.Supply
	// Each is what one cluster takes.
	Each uint64
	// Fits is how many clusters it is enough for, those that run included.
	Fits int
}

// String is like "memory (4.1 GB left, 450 MB for each)".
func (s Shortage) String() string {
	left, each := fmt.Sprint(s.Supply.Amount), fmt.Sprint(s.Each)
	if s.Resource == doctor.Memory || s.Resource == doctor.Disk {
		left, each = size(s.Supply.Amount), size(s.Each)
	}
	return fmt.Sprintf("%s (%s, %s for each)", s.Resource, left, each)
}

func size(n uint64) string {
	if n < giga {
		return fmt.Sprintf("%d MB", n/mega)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/giga)
}

// Fit says what there is too little of for so many clusters in all, the worst first. Of a resource that nobody knows
// there is enough.
func Fit(supplies map[doctor.Resource]doctor.Supply, cost Cost, there Population, wanted int) []Shortage {
	var short []Shortage
	for resource, each := range cost {
		supply, known := supplies[resource]
		if !known || each == 0 {
			continue
		}
		left := supply.Amount - min(supply.Amount, reserve()[resource])
		// A supply may be larger than any int; no room is.
		more := int(min(left/each, uint64(wanted+there.Others)))
		fits := max(there.settled(resource)+more, there.Running) // what runs has found its place
		if fits < wanted {
			short = append(short, Shortage{Resource: resource, Supply: supply, Each: each, Fits: fits})
		}
	}
	slices.SortFunc(short, func(a, b Shortage) int {
		return cmp.Or(cmp.Compare(a.Fits, b.Fits), strings.Compare(string(a.Resource), string(b.Resource)))
	})
	return short
}
