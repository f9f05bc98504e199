package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/clusters"
)

// creation is how long the fake takes to make a cluster.
const creation = 10 * time.Second

// fake is a provider in memory whose clusters can be paused.
type fake struct {
	clusters.Provider
	mu     sync.Mutex
	paused map[string]bool // by cluster
	away   error           // what questions and deletions fail with
	resume error           // what Resume fails with
}

func (f *fake) Identity() string { return "fake" }

func (f *fake) Create(ctx context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	select {
	case <-time.After(creation):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused[name] = false
	return &clusters.Cluster{Name: name}, nil
}

func (f *fake) Delete(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away == nil {
		delete(f.paused, name)
	}
	return f.away
}

// set changes the fake.
func (f *fake) set(change func(*fake)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fake) List(context.Context) ([]string, error) { return f.names(true), f.failure() }

func (f *fake) failure() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.away
}

// names are those of the clusters that run, and of the paused ones, too.
func (f *fake) names(paused bool) (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, sleeps := range f.paused {
		if paused || !sleeps {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (f *fake) Pause(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused[name] = true
	return nil
}

func (f *fake) Resume(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.paused[name] = false
	return f.resume
}

// testPool is a pool on a fake machine.
type testPool struct {
	*Pool
	fake    *fake
	manager *clusters.Manager
}

// open starts a pool, whose end is checked with the test's.
func open(t *testing.T, size int, change func(*fake)) *testPool {
	t.Helper()
	p := &testPool{fake: &fake{paused: map[string]bool{}}}
	change(p.fake)
	var err error
	if p.manager, err = clusters.New(t.TempDir(), clusters.WithProvider(p.fake)); err != nil {
		t.Fatal(err)
	}
	p.Pool = start(p.manager, func(context.Context, *clusters.Cluster) error { return nil }, Options{Size: size, Progress: func(line string) { t.Log(line) }})
	t.Cleanup(func() {
		p.Close()
		if names := p.fake.names(true); len(names) > 0 {
			t.Errorf("clusters left by a pool that was closed: %v", names)
		}
		if records, err := p.manager.List(t.Context()); err != nil || len(records) > 0 {
			t.Errorf("records left: %v, %v", records, err)
		}
	})
	return p
}

func unchanged(*fake) {}

// pass lets time pass until nothing happens any more.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (p *testPool) claim(t *testing.T) (name string, pooled bool, took time.Duration) {
	t.Helper()
	started := time.Now()
	c, pooled, err := p.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Name, pooled, time.Since(started)
}

func TestClaimTakesWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, 1, unchanged)
		pass(time.Minute)
		first, pooled, took := p.claim(t)
		if !pooled || took > 0 || !slices.Contains(p.fake.names(false), first) {
			t.Errorf("pooled %v after %v, running %v, want one that waited, at once, running", pooled, took, p.fake.names(false))
		}
		pass(time.Minute)
		second, _, _ := p.claim(t)
		if second == first {
			t.Errorf("cluster %s was handed out twice", first)
		}
		p.Discard(first)
		p.Discard(second)
		pass(time.Minute)
		if names := p.fake.names(true); len(names) != 1 {
			t.Errorf("clusters %v, want the next one that waits and neither of those that were used", names)
		}
	})
}

func TestClaimAwaitsCreation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := open(t, 1, unchanged)
		time.Sleep(creation / 2)
		name, pooled, took := p.claim(t)
		if pooled || took != creation/2 || !slices.Contains(p.fake.names(false), name) {
			t.Errorf("pooled %v after %v, want the one that was being made, running, after %v", pooled, took, creation/2)
		}
		p.Discard(name)
	})
}

func TestClaimReplacesUseless(t *testing.T) {
	for name, spoil := range map[string]func(p *testPool){
		"does not resume": func(p *testPool) { p.fake.set(func(f *fake) { f.resume = errors.New("frozen for good") }) },
		"not healthy": func(p *testPool) {
			p.healthy = func(context.Context, *clusters.Cluster) error { return errors.New("it has no nodes") }
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := open(t, 1, unchanged)
				pass(time.Minute)
				spoilt := p.fake.names(true)[0]
				spoil(p)
				got, _, _ := p.claim(t) // the next one is handed out before it is paused
				if got == spoilt {
					t.Errorf("claimed %s, which is of no use", got)
				}
				p.Discard(got)
				pass(time.Minute)
				if slices.Contains(p.fake.names(true), spoilt) {
					t.Errorf("%s is left", spoilt)
				}
			})
		})
	}
}

func TestClaimOnEngineFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := errors.New("no engine")
		p := open(t, 1, func(f *fake) { f.away = away })
		if _, _, err := p.Claim(t.Context()); !errors.Is(err, away) {
			t.Errorf("Claim() = %v, want what kept the cluster from being made", err)
		}
		pass(time.Hour)
		p.fake.set(func(f *fake) { f.away = nil })
		pass(time.Hour)
		if names := p.fake.names(true); len(names) != 1 || p.Waiting() != 1 {
			t.Errorf("clusters %v after the engine came back, want one that waits", names)
		}
	})
}
