// Package embedded makes clusters without containers and without root: a real etcd, kube-apiserver,
// kube-controller-manager and kube-scheduler as processes on loopback, with RBAC on, and kwok, which plays the nodes.
// Everything about the API is real; Pods are scheduled and count as running, but nothing runs in them.
//
// The programs are the stock ones. A process of its own, which is the importer's executable once more, starts them and
// ends them when the importer ends, however that happens.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/internal/disk"
	"github.com/example/operator-lab/clusters/internal/layout"
)

// Identity is what clusters of this provider are recorded under.
const Identity = "embedded"

// Embedded makes clusters that are processes of this machine.
type Embedded struct {
	state   string
	builder components.Builder
	handles sync.Map // *handle by name, of the clusters that this value made

	mu       sync.Mutex        // held while the programs are built
	programs map[string]string // where each was built, nil until somebody asked
}

var _ clusters.Provider = (*Embedded)(nil)

// New returns a provider that keeps its clusters under stateDir, and downloads or builds its programs into cacheDir, once;
// "" means [components.CacheDir]. log is told what takes long, line by line; it may be nil.
func New(stateDir, cacheDir string, log func(line string)) (*Embedded, error) {
	state, err := filepath.Abs(stateDir)
	if err == nil && cacheDir == "" {
		cacheDir, err = components.CacheDir()
	}
	if err != nil {
		return nil, fmt.Errorf("find the directories of embedded clusters: %w", err)
	}
	return &Embedded{state: state, builder: components.Builder{
		CacheDir: cacheDir, OS: runtime.GOOS, Download: true, Log: log,
	}}, nil
}

// NewManager returns a manager of embedded clusters, with the parameters of [New].
func NewManager(stateDir, cacheDir string, log func(line string)) (*clusters.Manager, error) {
	e, err := New(stateDir, cacheDir, log)
	if err != nil {
		return nil, err
	}
	return clusters.New(stateDir, clusters.WithProvider(e))
}

// Identity is [Identity].
func (e *Embedded) Identity() string { return Identity }

// Missing names the programs that [Embedded.Programs] would build.
func (e *Embedded) Missing() []string { return e.builder.Missing(Components()...) }

// Programs tells where each program was built, and builds what is missing. That takes minutes the first time; Create does
// it, too.
func (e *Embedded) Programs(ctx context.Context) (map[string]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.programs != nil {
		return e.programs, nil
	}
	built, err := e.builder.Build(ctx, Components()...)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, &clusters.Problem{What: "cannot build the embedded control plane", Err: err}
	}
	e.programs = built
	return built, nil
}

// dir holds everything of a control plane but the admin's kubeconfig.
func (e *Embedded) dir(name string) string {
	return filepath.Join(layout.Dir(e.state, name), "control-plane")
}

// List names the clusters of this state directory.
func (e *Embedded) List(context.Context) ([]string, error) {
	dirs, err := filepath.Glob(e.dir("*"))
	names := make([]string, 0, len(dirs))
	for _, dir := range dirs {
		names = append(names, filepath.Base(filepath.Dir(dir)))
	}
	return names, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Delete ends all processes of the cluster, sees that they are gone, and removes its files.
func (e *Embedded) Delete(_ context.Context, name string) error {
	if err := layout.CheckName(name); err != nil {
		return err
	}
	e.handles.Delete(name)
	if err := end(e.dir(name)); err != nil {
		return &clusters.Problem{What: "cannot delete cluster " + name, Reason: clusters.ErrBroken, Err: err}
	}
	if err := os.Remove(layout.Kubeconfig(e.state, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete kubeconfig of cluster %s: %w", name, err)
	}
	_ = os.Remove(layout.Dir(e.state, name)) // fails while the folder holds the record
	return nil
}

// Keep lets a cluster that this provider made outlive this process.
func (e *Embedded) Keep(_ context.Context, name string) error {
	h, ok := e.handles.Load(name)
	if !ok {
		return fmt.Errorf("keep cluster %s: this process did not make it", name)
	}
	return h.(*handle).keep()
}

// RestartControllers has the supervisor end the controller manager and start it again.
func (e *Embedded) RestartControllers(_ context.Context, name string) error {
	return e.send(name, restartCommand)
}

// Pause stops all programs.
func (e *Embedded) Pause(_ context.Context, name string) error { return e.send(name, pauseCommand) }

// Resume lets them go on.
func (e *Embedded) Resume(_ context.Context, name string) error { return e.send(name, continueCommand) }

// Commands write to the supervisor's named pipe.
func (e *Embedded) Commands(name string) (resume, remove string) {
	control := filepath.Join(e.dir(name), controlFile)
	return fmt.Sprintf("printf %c > '%s'", continueCommand, control), fmt.Sprintf("printf %c > '%s'", endCommand, control)
}

func (e *Embedded) send(name string, command byte) error {
	if err := send(e.dir(name), command); err != nil {
		return &clusters.Problem{What: "cluster " + name + " takes no commands", Reason: clusters.ErrBroken, Err: err}
	}
	return nil
}

// LoadImageArchive has nothing to do: a Pod counts as running whatever its image.
func (e *Embedded) LoadImageArchive(context.Context, string, string) error { return nil }

// SaveImage has no engine to take an image from.
func (e *Embedded) SaveImage(context.Context, string, string) error { return errors.ErrUnsupported }

// CollectLogs copies the logs of all programs into dir.
func (e *Embedded) CollectLogs(_ context.Context, name, dir string) error {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(e.dir(name), logFolder))); err != nil {
		return fmt.Errorf("collect logs of cluster %s: %w", name, err)
	}
	return nil
}

// nodesFile has the number of nodes.
const nodesFile = "nodes"

// Nodes tells of each node whether the control plane runs, without which there is none, and how much disk etcd has left.
func (e *Embedded) Nodes(_ context.Context, name string) ([]clusters.Node, error) {
	dir := e.dir(name)
	data, err := os.ReadFile(filepath.Join(dir, nodesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there is no such cluster
	}
	if err != nil {
		return nil, err
	}
	count, err := strconv.Atoi(string(data))
	if err != nil {
		return nil, err
	}
	alive, err := running(dir)
	if err != nil {
		return nil, err
	}
	node := clusters.Node{Running: alive, State: "running"}
	if !alive {
		node.State = "without its processes"
	}
	if free, err := disk.Free(dir); err == nil {
		node.FreeDisk = max(1, free)
	}
	nodes := make([]clusters.Node, count)
	for i := range nodes {
		nodes[i] = node
		nodes[i].Name = nodeName(name, i)
	}
	return nodes, nil
}
