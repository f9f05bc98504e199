// Package clusters makes Kubernetes clusters for tests and takes them away again.
//
// A [Manager] makes clusters with kind, or with another [Provider] such as that of package embedded. It writes down which
// process made which cluster before the cluster exists, so that what a dead process left can be found and removed. It
// deletes nothing else.
//
// The package returns errors; what is wrong with the machine is a [*Problem].
package clusters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/internal/layout"
)

// Manager makes and deletes clusters. Several processes may use the same state directory at once.
type Manager struct {
	state    string
	provider Provider
	sweep    sync.Once // before the first creation

	// For kind.
	engine string
	log    func(line string)
	pull   bool
}

// Option changes what [New] makes.
type Option func(*Manager)

// WithEngine chooses the container engine: docker, podman or nerdctl. By default it is the first that answers. An engine
// that was named is not asked before it is needed.
func WithEngine(name string) Option { return func(m *Manager) { m.engine = name } }

// WithLogger passes on what takes long, line by line and possibly from several goroutines at once. By default nobody is
// told.
func WithLogger(log func(line string)) Option { return func(m *Manager) { m.log = log } }

// WithPull lets a creation pull a node image that is not on this machine. By default it fails with [ErrImageMissing].
func WithPull() Option { return func(m *Manager) { m.pull = true } }

// WithProvider makes clusters in another way than with kind.
func WithProvider(p Provider) Option { return func(m *Manager) { m.provider = p } }

// New returns a manager that keeps its records and kubeconfigs, and the logs of creations that failed, in the folder dir.
// Runs that share a folder remove what an earlier one left that was killed: a manager does so before its first creation.
// When no engine was named and none answers, the error is [ErrNoEngine].
func New(dir string, opts ...Option) (*Manager, error) {
	state, err := filepath.Abs(dir)
	if err != nil {
		return nil, fmt.Errorf("find state directory: %w", err)
	}
	m := &Manager{state: state, log: func(string) {}}
	for _, opt := range opts {
		opt(m)
	}
	if m.provider != nil {
		return m, nil
	}
	if m.engine == "" {
		if m.engine, err = engine.Detect(context.Background()); err != nil {
			return nil, &Problem{What: "no container engine", Reason: ErrNoEngine, Err: err}
		}
	}
	m.provider, err = newKind(m)
	return m, err
}

// Provider is the provider that makes the clusters.
func (m *Manager) Provider() Provider { return m.provider }

// Engine is the container engine of kind's clusters, "" with another provider.
func (m *Manager) Engine() string { return m.engine }

// Kubeconfig is the path of a cluster's kubeconfig, whether it exists or not.
func (m *Manager) Kubeconfig(name string) string { return layout.Kubeconfig(m.state, name) }

// labels are short, because they become part of host names.
var labels = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,18}[a-z0-9])?$`)

// NewName draws a name that no other cluster has, lab-LABEL-<8 hex>.
func NewName(label string) string {
	var random [4]byte
	rand.Read(random[:]) // never fails
	return "lab-" + label + "-" + hex.EncodeToString(random[:])
}

// Create makes a cluster. It belongs to this process, and a later Sweep removes it when the process has ended without
// having deleted it, unless spec.Keep is true. When Create fails or ctx ends, nothing of the cluster is left; if that
// cannot be achieved, the error says so and the record stays for a later Sweep.
func (m *Manager) Create(ctx context.Context, spec Spec) (c *Cluster, err error) {
	return m.create(ctx, spec, false)
}

func (m *Manager) create(ctx context.Context, spec Spec, shared bool) (c *Cluster, err error) {
	if spec.Label == "" {
		spec.Label = "test"
	}
	if !labels.MatchString(spec.Label) {
		return nil, fmt.Errorf("create cluster: label %q: use up to 20 lower case letters, digits and dashes", spec.Label)
	}
	if spec.Name == "" {
		spec.Name = NewName(spec.Label)
	}
	m.sweep.Do(func() {
		if _, err := m.Sweep(ctx); err != nil {
			m.log(fmt.Sprintf("could not remove what an earlier run left: %v", err))
		}
	})
	// An engine that does not answer is found out before anything is written down: what is recorded has to be deleted.
	if _, err := m.provider.List(ctx); err != nil {
		return nil, err
	}
	record, err := m.claim(spec, shared)
	if err != nil {
		return nil, err
	}
	created := false
	defer func() {
		if created {
			return
		}
		if errors.Is(err, ErrExists) { // it is somebody else's
			c, err = nil, errors.Join(err, m.forget(spec.Name, m.unclaim))
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer cancel()
		c, err = nil, errors.Join(err, m.Delete(ctx, spec.Name))
	}()
	if c, err = m.provider.Create(ctx, spec.Name, spec); err != nil {
		return nil, err
	}
	if spec.Prepare != nil {
		err = spec.Prepare(ctx, c)
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("create cluster %s: %w", spec.Name, ctx.Err())
	}
	if err == nil && (spec.Keep || shared) {
		err = m.provider.Keep(ctx, spec.Name)
	}
	if err != nil {
		return nil, err
	}
	record.Kept, record.Cluster = spec.Keep, c
	if err := m.write(record); err != nil {
		return nil, err
	}
	created = true
	return c, nil
}

// Keep lets a cluster of this process stay after it, until it is deleted by name, as [Spec.Keep] does.
func (m *Manager) Keep(ctx context.Context, name string) error {
	record, err := m.read(name)
	if err == nil && !record.Shared {
		err = m.provider.Keep(ctx, name)
	}
	if err != nil {
		return fmt.Errorf("keep cluster %s: %w", name, err)
	}
	record.Kept = true
	return m.write(record)
}

// Delete removes a cluster that is recorded here, and its record. A cluster that exists without a record is refused; one
// that neither exists nor is recorded is no error.
func (m *Manager) Delete(ctx context.Context, name string) error {
	_, err := m.delete(ctx, name, false)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	names, err := m.provider.List(ctx)
	if err == nil && slices.Contains(names, name) {
		err = fmt.Errorf("delete cluster %s: it is not recorded under %s, so it is not ours to delete", name, m.state)
	}
	return err
}

// delete is Delete, and with abandoned only of what nobody wants any more. Until it returns, the record of an owner that
// has ended is locked: nobody else deletes the cluster, or makes another one of that name.
func (m *Manager) delete(ctx context.Context, name string, abandoned bool) (deleted bool, err error) {
	var record Record
	unlock, dead := func() {}, false
	err = m.withLock(func() error {
		if record, err = m.read(name); err != nil {
			return err
		}
		unlock, dead, err = m.tryLock(name)
		return err
	})
	if err != nil {
		return false, err
	}
	defer unlock()
	if abandoned && (record.Kept || !dead) {
		return false, nil
	}
	if record.Provider != m.provider.Identity() {
		return false, fmt.Errorf("delete cluster %s: it was made by %s, not by %s", name, record.Provider, m.provider.Identity())
	}
	// A cluster that was being made when its process died, a moment ago, may come into being after its deletion: the
	// start of a container takes 1 to 3 s. So it is deleted again and again for a while.
	end := time.Now()
	if dead && record.Cluster == nil && time.Since(record.Created) < bootTimeout {
		end = end.Add(orphanTime)
	}
	for {
		if err := m.provider.Delete(ctx, name); err != nil {
			return false, err
		}
		if time.Now().After(end) {
			return true, m.forget(name, func(name string) error { return os.RemoveAll(layout.Dir(m.state, name)) })
		}
		if err := pause(ctx, 200*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// orphanTime is how long programs that a killed process had started may go on making its cluster.
const orphanTime = 5 * time.Second

// pause returns after d, or when ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}

// Sweep deletes the clusters that dead processes left and returns their names. Kept clusters, those of living processes
// and those of other providers stay. What could not be deleted is reported as an error and stays recorded. It should not
// stop anybody from working.
func (m *Manager) Sweep(ctx context.Context) (swept []string, err error) {
	records, err := m.List(ctx)
	errs := []error{err}
	for _, record := range records {
		if record.Kept || record.alive || record.Provider != m.provider.Identity() {
			continue
		}
		deleted, err := m.delete(ctx, record.Name, true)
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // nobody else deleted it meanwhile
			errs = append(errs, fmt.Errorf("sweep: %w", err))
		}
		if deleted {
			swept = append(swept, record.Name)
		}
	}
	return swept, errors.Join(errs...)
}

// LoadImage brings an image of the container engine into every node.
func (m *Manager) LoadImage(ctx context.Context, name, image string) error {
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return fmt.Errorf("load image %s: %w", image, err)
	}
	defer os.RemoveAll(dir)
	archive := filepath.Join(dir, "image.tar")
	if err := m.provider.SaveImage(ctx, image, archive); err != nil {
		return fmt.Errorf("load image %s: %w", image, err)
	}
	return m.provider.LoadImageArchive(ctx, name, archive)
}

// List returns the records of all clusters of the state directory, sorted by name, those of other processes and providers
// included. With an error it returns what could be read.
func (m *Manager) List(context.Context) ([]Record, error) {
	entries, err := os.ReadDir(filepath.Join(m.state, "clusters"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list clusters: %w", err)
	}
	var records []Record
	err = m.withLock(func() error {
		var errs []error
		for _, entry := range entries {
			if !entry.IsDir() {
				continue
			}
			switch record, err := m.readAlive(entry.Name()); {
			case err == nil:
				records = append(records, record)
			case errors.Is(err, fs.ErrNotExist):
				_ = m.unclaim(entry.Name()) // of a process that was killed before it had written its record
			default:
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
	slices.SortFunc(records, func(a, b Record) int { return strings.Compare(a.Name, b.Name) })
	return records, err
}
