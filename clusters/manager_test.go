package clusters

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters/internal/layout"
)

// fake is a provider in memory. Its hooks replace what a method does.
type fake struct {
	Provider
	mu       sync.Mutex
	clusters []string
	create   func(ctx context.Context, name string) error
	delete   func(name string) error
	identity string
}

func (f *fake) Identity() string {
	if f.identity == "" {
		return "fake"
	}
	return f.identity
}

func (f *fake) add(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters = append(f.clusters, name)
}

func (f *fake) Create(ctx context.Context, name string, _ Spec) (*Cluster, error) {
	if names, _ := f.List(ctx); slices.Contains(names, name) {
		return nil, ErrExists
	}
	f.add(name)
	if f.create != nil {
		if err := f.create(ctx, name); err != nil {
			return nil, err
		}
	}
	return &Cluster{Name: name, Provider: "fake", Nodes: 1}, nil
}

func (f *fake) Delete(_ context.Context, name string) error {
	if f.delete != nil {
		if err := f.delete(name); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.clusters = slices.DeleteFunc(f.clusters, func(c string) bool { return c == name })
	return nil
}

func (f *fake) List(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.clusters), nil
}

func (f *fake) Keep(context.Context, string) error { return nil }

// newManager is one of a state directory with that provider.
func newManager(t *testing.T, state string, f Provider) *Manager {
	t.Helper()
	m, err := New(state, WithProvider(f))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func newFake(t *testing.T) (*Manager, *fake) {
	t.Helper()
	f := &fake{}
	return newManager(t, t.TempDir(), f), f
}

// recorded returns the names of all records.
func recorded(t *testing.T, o *Manager) []string {
	t.Helper()
	owners, err := o.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, owner := range owners {
		names = append(names, owner.Name)
	}
	return names
}

// die lets go of the lock of a record, as the kernel does when the process ends.
func die(o *Manager, name string) {
	if unlock, ok := held.LoadAndDelete(o.lockFile(name)); ok {
		unlock.(func())()
	}
}

// leave makes a cluster whose process has died.
func leave(t *testing.T, o *Manager, kept bool) string {
	t.Helper()
	c, err := o.Create(t.Context(), Spec{Keep: kept})
	if err != nil {
		t.Fatal(err)
	}
	die(o, c.Name)
	return c.Name
}

func TestCreateRecordsFirst(t *testing.T) {
	o, f := newFake(t)
	f.create = func(_ context.Context, name string) error {
		owner, err := o.readAlive(name)
		if err != nil {
			t.Errorf("no record while the cluster is being made: %v", err)
		}
		if owner.Label != "lab-4" || owner.Provider != "fake" || !owner.Alive() {
			t.Errorf("record = %+v, want label lab-4, provider fake and a living process", owner)
		}
		if owner.Kept {
			t.Error("a half-made cluster is recorded as kept: nothing would sweep it after a crash")
		}
		return nil
	}
	c, err := o.Create(t.Context(), Spec{Label: "lab-4", Keep: true})
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^lab-lab-4-[0-9a-f]{8}$`).MatchString(c.Name) {
		t.Errorf("name %s is not lab-<label>-<8 hex>", c.Name)
	}
	owner, err := o.read(c.Name)
	if err != nil {
		t.Fatal(err)
	}
	if !owner.Kept {
		t.Error("the finished cluster is not recorded as kept")
	}
	if diff := cmp.Diff(c, owner.Cluster); diff != "" {
		t.Errorf("recorded cluster differs (-want +got):\n%s", diff)
	}
}

func TestCreateFails(t *testing.T) {
	failure := errors.New("no space")
	cases := map[string]func(context.CancelFunc) error{
		"error":  func(context.CancelFunc) error { return failure },
		"cancel": func(cancel context.CancelFunc) error { cancel(); return nil },
	}
	for name, create := range cases {
		t.Run(name, func(t *testing.T) {
			o, f := newFake(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			f.create = func(context.Context, string) error { return create(cancel) }
			c, err := o.Create(ctx, Spec{})
			if err == nil || c != nil {
				t.Errorf("Create() = %v, %v, want an error and no cluster", c, err)
			}
			if len(f.clusters) > 0 {
				t.Errorf("clusters left: %v", f.clusters)
			}
			if names := recorded(t, o); len(names) > 0 {
				t.Errorf("records left: %v", names)
			}
		})
	}
}

// Until a cluster was prepared nobody may take it for one that is ready, whatever happens to this process.
func TestPrepareFails(t *testing.T) {
	o, f := newFake(t)
	failure := errors.New("no such image")
	spec := Spec{Keep: true, Prepare: func(context.Context, *Cluster) error {
		owners, err := o.List(t.Context())
		if err != nil || len(owners) != 1 || owners[0].Kept || owners[0].Cluster != nil {
			t.Errorf("while it is prepared it is recorded as %+v, %v", owners, err)
		}
		return failure
	}}
	if c, err := o.Create(t.Context(), spec); !errors.Is(err, failure) || c != nil {
		t.Errorf("Create() = %v, %v, want the failure", c, err)
	}
	if names := recorded(t, o); len(names) > 0 || len(f.clusters) > 0 {
		t.Errorf("left: %v, recorded: %v", f.clusters, names)
	}
}

func TestDeleteFails(t *testing.T) {
	o, f := newFake(t)
	c, err := o.Create(t.Context(), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	f.delete = func(string) error { return errors.New("still there") }
	if err := o.Delete(t.Context(), c.Name); err == nil {
		t.Error("Delete() = nil although the provider did not delete it")
	}
	if diff := cmp.Diff([]string{c.Name}, recorded(t, o)); diff != "" {
		t.Errorf("records after a deletion that failed (-want +got):\n%s", diff)
	}
	f.delete = nil
	if err := o.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
	if names := recorded(t, o); len(names) > 0 {
		t.Errorf("records left: %v", names)
	}
	if err := o.Delete(t.Context(), c.Name); err != nil {
		t.Errorf("deleting a second time: %v", err)
	}
}

func TestDeleteRefusesUnrecorded(t *testing.T) {
	o, f := newFake(t)
	c, err := o.Create(t.Context(), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	longer, shorter := c.Name+"0", c.Name[:len(c.Name)-1]
	f.add(longer)
	f.add(shorter)
	for _, name := range []string{longer, shorter} {
		if err := o.Delete(t.Context(), name); err == nil {
			t.Errorf("Delete(%s) = nil, want a refusal: it is not recorded", name)
		}
	}
	if err := o.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{longer, shorter}, f.clusters); diff != "" {
		t.Errorf("clusters after the deletion (-want +got):\n%s", diff)
	}
}

func TestSweep(t *testing.T) {
	o, f := newFake(t)
	f.add("someone-elses")
	dead := leave(t, o, false)
	kept := leave(t, o, true)
	living, err := o.Create(t.Context(), Spec{})
	if err != nil {
		t.Fatal(err)
	}
	swept, err := o.Sweep(t.Context())
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{dead}, swept); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
	want := []string{"someone-elses", kept, living.Name}
	if diff := cmp.Diff(want, f.clusters); diff != "" {
		t.Errorf("clusters after the sweep (-want +got):\n%s", diff)
	}
}

func TestSweepGoesOnAfterFailure(t *testing.T) {
	o, f := newFake(t)
	names := []string{leave(t, o, false), leave(t, o, false)}
	slices.Sort(names)
	f.delete = func(name string) error {
		if name == names[0] {
			return errors.New("stuck")
		}
		return nil
	}
	swept, err := o.Sweep(t.Context())
	if err == nil || !strings.Contains(err.Error(), "stuck") {
		t.Errorf("Sweep() error = %v, want the failure of the first cluster", err)
	}
	if diff := cmp.Diff(names[1:], swept); diff != "" {
		t.Errorf("swept (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(names[:1], recorded(t, o)); diff != "" {
		t.Errorf("records after the sweep (-want +got):\n%s", diff)
	}
}

func TestOtherProvidersClusterStays(t *testing.T) {
	o, f := newFake(t)
	name := leave(t, o, false)
	other := newManager(t, o.state, &fake{identity: "fake/elsewhere"})
	swept, err := other.Sweep(t.Context())
	if err != nil || len(swept) > 0 {
		t.Errorf("Sweep() = %v, %v, want nothing: it cannot see that engine", swept, err)
	}
	if err := other.Delete(t.Context(), name); err == nil {
		t.Error("Delete() = nil: it would forget a cluster that it cannot see")
	}
	if !slices.Contains(f.clusters, name) || !slices.Contains(recorded(t, o), name) {
		t.Errorf("clusters %v, records %v: want %s in both", f.clusters, recorded(t, o), name)
	}
}

func TestOneCreatorGetsTheName(t *testing.T) {
	for range 50 {
		o, f := newFake(t)
		var made atomic.Int32
		var wg sync.WaitGroup
		for range 8 {
			other := newManager(t, o.state, f)
			wg.Go(func() {
				switch _, err := other.Create(t.Context(), Spec{Name: "mine"}); {
				case err == nil:
					made.Add(1)
				case !errors.Is(err, ErrExists):
					t.Errorf("create() = %v, want ErrExists or a cluster", err)
				}
			})
		}
		wg.Wait()
		if n := made.Load(); n != 1 || !slices.Equal(f.clusters, []string{"mine"}) || !slices.Equal(recorded(t, o), []string{"mine"}) {
			t.Fatalf("%d creators got the name, clusters %v, records %v: want one of each", n, f.clusters, recorded(t, o))
		}
	}
}

func TestFailedCreateLeavesAnothersCluster(t *testing.T) {
	o, f := newFake(t)
	f.add("mine") // by somebody who knows of no records
	theirs := filepath.Join(layout.Dir(o.state, "mine"), "label")
	if err := errors.Join(layout.MakeDir(o.state, "mine"), os.WriteFile(theirs, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Create(t.Context(), Spec{Name: "mine"}); !errors.Is(err, ErrExists) {
		t.Errorf("Create() = %v, want ErrExists", err)
	}
	if names := recorded(t, o); !slices.Equal(f.clusters, []string{"mine"}) || len(names) > 0 {
		t.Errorf("clusters %v, records %v: want the other's cluster and no record", f.clusters, names)
	}
	if _, err := os.Stat(theirs); err != nil {
		t.Errorf("a file of the other's cluster is gone: %v", err)
	}
}

func TestNewManagerSweeps(t *testing.T) {
	o, f := newFake(t)
	if _, err := o.Create(t.Context(), Spec{Name: "mine"}); err != nil {
		t.Fatal(err)
	}
	if _, err := newManager(t, o.state, f).Create(t.Context(), Spec{Name: "mine"}); !errors.Is(err, ErrExists) {
		t.Errorf("Create() = %v while the owner lives, want ErrExists", err)
	}
	die(o, "mine")
	if _, err := newManager(t, o.state, f).Create(t.Context(), Spec{Name: "mine"}); err != nil {
		t.Errorf("Create() = %v after the death of the owner", err)
	}
	if !slices.Equal(f.clusters, []string{"mine"}) {
		t.Errorf("clusters %v, want one", f.clusters)
	}
}

func TestCreateRefusesLabel(t *testing.T) {
	o, f := newFake(t)
	for _, label := range []string{"Lab", "a_b", "-a", "a-", "../x", strings.Repeat("a", 21)} {
		if _, err := o.Create(t.Context(), Spec{Label: label}); err == nil {
			t.Errorf("Create(%q) = nil error, want a refusal", label)
		}
	}
	if len(f.clusters) > 0 {
		t.Errorf("clusters made: %v", f.clusters)
	}
}
