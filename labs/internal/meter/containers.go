package meter

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// clusterLabel is what kind labels the node containers of a cluster with.
const clusterLabel = "io.x-k8s.kind.cluster"

// Nodes are the control groups of the node containers of a kind cluster.
type Nodes []Group

// NodesOf finds the control groups of a kind cluster's nodes through the command of its container engine. They can be
// read for as long as the containers exist, paused ones included.
func NodesOf(ctx context.Context, engine, cluster string) (Nodes, error) {
	ids, err := ask(ctx, engine, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+clusterLabel+"="+cluster)
	if err != nil {
		return nil, err
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("find the nodes of cluster %s: %s has none", cluster, engine)
	}
	lines, err := ask(ctx, engine, append([]string{"inspect", "--format", "{{.Id}} {{.State.Pid}}"}, ids...)...)
	if err != nil {
		return nil, err
	}
	var nodes Nodes
	for _, line := range lines {
		id, text, _ := strings.Cut(line, " ")
		pid, err := strconv.Atoi(text)
		if err != nil {
			return nil, fmt.Errorf("find the nodes of cluster %s: %w: %q", cluster, errUnreadable, line)
		}
		group, err := Host.Group(id, pid)
		if err != nil {
			return nil, err
		}
		nodes = append(nodes, group)
	}
	return nodes, nil
}

// ask runs the engine's command and returns the words of each line.
func ask(ctx context.Context, engine string, args ...string) ([]string, error) {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, engine, args...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s %s: %w: %s", engine, args[0], err, strings.TrimSpace(stderr.String()))
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' || r == '\r' }), nil
}

// CPU is the processor time of all nodes since they were started.
func (n Nodes) CPU() (total time.Duration, err error) {
	for _, group := range n {
		used, err := group.CPU()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// Memory is the working set of all nodes in bytes.
func (n Nodes) Memory() (total uint64, err error) {
	for _, group := range n {
		used, err := group.Memory()
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}
