// Package embedded makes clusters without containers and without root: a real
// etcd, kube-apiserver, kube-controller-manager and kube-scheduler as processes on
// loopback, with certificates of their own and RBAC on, and kwok, which plays the
// nodes. Everything about the API is real; Pods are scheduled and count as running,
// but nothing runs in them.
//
// The programs are the stock ones, which clusters/components downloads or builds from source.
package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded/supervisor"
	"github.com/example/operator-lab/clusters/internal/disk"
)

// Identity is what clusters of this provider are recorded under.
const Identity = "embedded"

// SuperviseCommand is the first argument of this executable when it is run as a
// supervisor; the second one is the folder that [Supervise] gets.
const SuperviseCommand = "supervise"

// Embedded makes clusters that are processes of this machine.
type Embedded struct {
	state        string
	builder      components.Builder
	supervisor   []string
	log          func(line string)
	readyTimeout time.Duration

	mu       sync.Mutex
	programs map[string]string             // where each was built, nil until somebody asked
	handles  map[string]*supervisor.Handle // of the clusters that this value made
}

var (
	_ clusters.Provider            = (*Embedded)(nil)
	_ clusters.NodeInspector       = (*Embedded)(nil)
	_ clusters.Identifier          = (*Embedded)(nil)
	_ clusters.ControllerRestarter = (*Embedded)(nil)
	_ clusters.Keeper              = (*Embedded)(nil)
)

// Option changes what New makes.
type Option func(*Embedded)

// WithLogger passes on what takes long, line by line. Without it, nobody is told.
func WithLogger(log func(line string)) Option {
	return func(e *Embedded) { e.log = log }
}

// New returns a provider that keeps its clusters under stateDir, and downloads or
// builds its programs into cacheDir, once.
func New(stateDir, cacheDir string, opts ...Option) (*Embedded, error) {
	state, err := filepath.Abs(stateDir)
	if err != nil {
		return nil, fmt.Errorf("find state directory: %w", err)
	}
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program: %w", err)
	}
	e := &Embedded{
		state: state, supervisor: []string{self, SuperviseCommand}, log: func(string) {},
		readyTimeout: ReadyTimeout, handles: map[string]*supervisor.Handle{},
	}
	for _, opt := range opts {
		opt(e)
	}
	e.builder = components.Builder{CacheDir: cacheDir, OS: runtime.GOOS, Download: true, Log: e.log}
	return e, nil
}

// Supervise is the life of the process that answers for one cluster: it returns
// when the cluster is gone.
func Supervise(dir string) error {
	return supervisor.Run(dir)
}

// Identity is [Identity].
func (e *Embedded) Identity() string { return Identity }

// Prepare builds the programs, unless they were built before. That takes minutes
// the first time; Create does it too.
func (e *Embedded) Prepare(ctx context.Context) error {
	_, err := e.Programs(ctx)
	return err
}

// Missing names the programs that Prepare would build.
func (e *Embedded) Missing(context.Context) ([]string, error) {
	return e.builder.Missing(programNames()...), nil
}

// Programs tells where each program was built, and builds what is missing.
func (e *Embedded) Programs(ctx context.Context) (map[string]string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.programs != nil {
		return e.programs, nil
	}
	built, err := e.builder.Build(ctx, programNames()...)
	if err != nil {
		return nil, problem(ctx, "cannot build the embedded control plane", err)
	}
	e.programs = built
	return built, nil
}

// problem makes err a *clusters.Problem, unless the caller has ended ctx.
func problem(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return &clusters.Problem{What: what, Fix: "make doctor", Err: err}
}

// planeFolder holds everything of a cluster but its kubeconfig.
const planeFolder = "control-plane"

func (e *Embedded) plane(name string) string {
	return filepath.Join(clusters.Dir(e.state, name), planeFolder)
}

// List names the clusters of this state directory: each lives in its folder alone.
func (e *Embedded) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(e.state, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if exists(e.plane(entry.Name())) {
			names = append(names, entry.Name())
		}
	}
	return names, nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// Delete ends all processes of the cluster, sees that they are gone, and removes
// its files.
func (e *Embedded) Delete(_ context.Context, name string) error {
	if err := clusters.CheckName(name); err != nil {
		return err
	}
	// One that is only just starting has not written down yet that it exists.
	if h := e.release(name); h != nil {
		h.End()
	}
	if err := supervisor.End(e.plane(name)); err != nil {
		return &clusters.Problem{What: "cannot delete cluster " + name, Fix: "make down", Err: err}
	}
	if err := os.Remove(clusters.Kubeconfig(e.state, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete kubeconfig of cluster %s: %w", name, err)
	}
	// Fails while the folder still holds the owner's record, which is right.
	_ = os.Remove(clusters.Dir(e.state, name))
	return nil
}

// hold remembers the supervisor of a cluster, for whoever keeps or deletes it.
func (e *Embedded) hold(name string, h *supervisor.Handle) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.handles[name] = h
}

// release forgets the supervisor of a cluster that this value made, and returns it.
func (e *Embedded) release(name string) *supervisor.Handle {
	e.mu.Lock()
	defer e.mu.Unlock()
	h := e.handles[name]
	delete(e.handles, name)
	return h
}

// Keep lets a cluster that this provider made outlive this process, and returns the
// process that answers for it from now on.
func (e *Embedded) Keep(_ context.Context, name string) (pid int, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	h, ok := e.handles[name]
	if !ok {
		return 0, fmt.Errorf("keep cluster %s: this process did not make it", name)
	}
	return h.PID(), h.Keep()
}

// RestartControllers ends the controller manager; its supervisor starts it again.
func (e *Embedded) RestartControllers(_ context.Context, name string) error {
	if err := supervisor.Restart(e.plane(name), controllerManager); err != nil {
		return &clusters.Problem{What: "cannot restart the controllers of cluster " + name, Fix: "make down", Err: err}
	}
	return nil
}

// LoadImageArchive has nothing to do: a Pod counts as running whatever its image.
// It still wants to see the archive, as every provider does.
func (e *Embedded) LoadImageArchive(_ context.Context, name, archive string) error {
	if !exists(e.plane(name)) {
		return fmt.Errorf("load image archive: cluster %s: %w", name, errNoCluster)
	}
	if _, err := os.Stat(archive); err != nil {
		return fmt.Errorf("load image archive: %w", err)
	}
	return nil
}

var errNoCluster = errors.New("no such cluster")

// CollectLogs copies the logs of all programs into dir.
func (e *Embedded) CollectLogs(_ context.Context, name, dir string) error {
	plane := e.plane(name)
	if !exists(plane) {
		return fmt.Errorf("collect logs: cluster %s: %w", name, errNoCluster)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("collect logs of cluster %s: %w", name, err)
	}
	entries, err := os.ReadDir(supervisor.Logs(plane))
	errs := []error{err}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(supervisor.Logs(plane), entry.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, entry.Name()), data, 0o600)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("collect logs of cluster %s: %w", name, err)
	}
	return nil
}

// Nodes tells of each node whether all programs of the control plane run, without
// which it is none, and how much disk etcd has left.
func (e *Embedded) Nodes(_ context.Context, name string) ([]clusters.Node, error) {
	plane := e.plane(name)
	description, err := readDescription(plane)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // there is no such cluster
	}
	if err != nil {
		return nil, err
	}
	running, stopped, starts := health(plane)
	free, err := disk.Free(plane)
	if err == nil {
		free = max(1, free)
	}
	state := "running"
	if !running {
		state = "without its processes"
	}
	nodes := make([]clusters.Node, 0, description.Nodes)
	for i := range description.Nodes {
		nodes = append(nodes, clusters.Node{
			Name: nodeName(name, i), Running: running, State: state, Stopped: stopped, Starts: starts, FreeDisk: free,
		})
	}
	return nodes, nil
}

// health says whether the supervisor of a control plane is at work, which of its
// programs are not, and how often each was started.
func health(plane string) (running bool, stopped []string, starts map[string]int) {
	s, err := supervisor.ReadState(plane)
	if err != nil || !s.Supervisor.Alive() {
		return false, nil, nil
	}
	starts = map[string]int{}
	for _, name := range programNames() {
		p := s.Program(name)
		if p == nil || p.Ended != "" || !p.Process.Alive() {
			stopped = append(stopped, name)
		}
		if p != nil {
			starts[name] = p.Starts
		}
	}
	return true, stopped, starts
}
