package bench

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/meter"
)

// watch counts processor time from its start: that of our own process tree, and that of the whole machine.
type watch struct {
	tree, machine time.Duration
	known         bool // whether tree could be read
}

func startWatch() watch {
	tree, err := meter.Tree()
	machine, _ := meter.Machine() // 0 where it is not known
	return watch{tree: tree, machine: machine, known: err == nil}
}

// read fills in the processor time of a sample: ours and that of the nodes, which is what nodes says or, where it
// could not be read, the whole machine's; then a note says so.
func (w watch) read(s *Sample, nodes time.Duration, err error) {
	s.MachineCoreSeconds = w.wholeMachine()
	tree, treeErr := meter.Tree()
	if w.known && treeErr == nil && err == nil {
		s.CoreSeconds = (tree - w.tree + nodes).Seconds()
		return
	}
	s.CoreSeconds = s.MachineCoreSeconds
	s.Note = joinNotes(s.Note, "core-seconds are those of the whole machine: the engine's containers run where they cannot be counted")
}

// wholeMachine is the processor time that everything on the machine took since the watch was started, in seconds, and 0
// where it is not known.
func (w watch) wholeMachine() float64 {
	now, err := meter.Machine()
	if err != nil {
		return 0
	}
	return (now - w.machine).Seconds()
}

func joinNotes(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// nodesCPU is the processor time that the nodes of a cluster have used since they were started, 0 for a cluster that is
// processes of ours.
func (w *Workbench) nodesCPU(ctx context.Context, c *clusters.Cluster) (time.Duration, error) {
	if !c.RealPods {
		return 0, nil
	}
	nodes, err := meter.NodesOf(ctx, w.Engine, c.Name)
	if err != nil {
		return 0, err
	}
	return nodes.CPU()
}

// nodesMemory is the working set of a cluster's nodes in bytes, and 0 where the engine's containers are out of sight.
func (w *Workbench) nodesMemory(ctx context.Context, c *clusters.Cluster) (uint64, error) {
	nodes, err := meter.NodesOf(ctx, w.Engine, c.Name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return nodes.Memory()
}

// steps keeps the time of steps that follow each other, and nothing of what lies between them.
type steps struct{ parts []Part }

func (s *steps) do(name string, step func() error) error {
	began := time.Now()
	err := step()
	s.parts = append(s.parts, Part{Name: name, Seconds: time.Since(began).Seconds()})
	return err
}

// seconds are those of all steps.
func (s *steps) seconds() (total float64) {
	for _, part := range s.parts {
		total += part.Seconds
	}
	return total
}
