package pool

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
)

// creation is how long the fake takes to make a cluster.
const creation = 10 * time.Second

// fake is a provider in memory whose clusters can be paused.
type fake struct {
	mu     sync.Mutex
	paused map[string]bool // by cluster
	most   int             // the largest number of clusters that were there at once
	fails  error           // what creations fail with
	away   error           // what deletions fail with
	stuck  map[string]error
}

func (f *fake) Create(ctx context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	select {
	case <-time.After(creation):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails != nil {
		if f.away != nil {
			f.paused[name] = false // half of it is there
		}
		return nil, f.fails
	}
	f.paused[name] = false
	f.most = max(f.most, len(f.paused))
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

// engine has creations and deletions fail with err, or work again.
func (f *fake) engine(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fails, f.away = err, err
}

func (f *fake) List(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.paused {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, nil
}

func (f *fake) LoadImageArchive(context.Context, string, string) error { return nil }
func (f *fake) CollectLogs(context.Context, string, string) error      { return nil }

func (f *fake) Pause(_ context.Context, name string) error  { return f.set(name, true) }
func (f *fake) Resume(_ context.Context, name string) error { return f.set(name, false) }

func (f *fake) set(name string, paused bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if was, ok := f.paused[name]; !ok || was == paused {
		return errors.New("not in a state for that: " + name)
	}
	if err := f.stuck[name]; err != nil {
		return err
	}
	f.paused[name] = paused
	return nil
}

// running are the clusters that are not paused.
func (f *fake) running() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []string{}
	for name, paused := range f.paused {
		if !paused {
			names = append(names, name)
		}
	}
	return names
}

// house is a pool on a fake machine.
type house struct {
	*Pool
	fake   *fake
	owned  *clusters.Owned
	memory atomic.Uint64
}

// first is the name of the cluster that has waited longest.
func (h *house) first() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waiting[0].cluster.Name
}

func open(t *testing.T, size int) *house {
	t.Helper()
	h := &house{fake: &fake{paused: map[string]bool{}, stuck: map[string]error{}}}
	h.memory.Store(100 << 30)
	h.owned = clusters.NewOwned(t.TempDir(), h.fake)
	h.Pool = Start(h.owned, Options{
		Size:       size,
		Fresh:      func(context.Context, *clusters.Cluster) error { return nil },
		FreeMemory: func() (uint64, bool) { return h.memory.Load(), true },
	})
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if names, _ := h.fake.List(t.Context()); len(names) > 0 {
			t.Errorf("clusters left by a pool that was closed: %v", names)
		}
		if owners, err := h.owned.List(t.Context()); err != nil || len(owners) > 0 {
			t.Errorf("records left: %v, %v", owners, err)
		}
	})
	return h
}

// pass lets time pass until nothing happens any more.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (h *house) claim(t *testing.T) (name string, pooled bool, took time.Duration) {
	t.Helper()
	started := time.Now()
	c, pooled, err := h.Claim(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c.Name, pooled, time.Since(started)
}

func TestThePoolFillsUpAndSleeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		pass(time.Hour)
		if h.Waiting() != 2 || h.fake.most != 2 {
			t.Errorf("%d wait, and up to %d were there, want 2", h.Waiting(), h.fake.most)
		}
		if running := h.fake.running(); len(running) > 0 {
			t.Errorf("running while nobody needs them: %v", running)
		}
	})
}

func TestAClaimTakesWhatWaitsAndTheNextIsMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		pass(time.Minute)
		first, pooled, took := h.claim(t)
		if !pooled || took > 0 {
			t.Errorf("pooled %v after %v, want one that waited, at once", pooled, took)
		}
		if diff := cmp.Diff([]string{first}, h.fake.running()); diff != "" {
			t.Errorf("running after the claim (-want +got):\n%s", diff)
		}
		owners, err := h.owned.List(t.Context())
		claimed := slices.IndexFunc(owners, func(o clusters.Owner) bool { return o.Name == first && o.Claimed != nil })
		if err != nil || claimed < 0 {
			t.Errorf("records = %+v, %v: want the claim of %s written down", owners, err, first)
		}
		pass(time.Minute)
		second, _, _ := h.claim(t)
		if second == first {
			t.Errorf("cluster %s was handed out twice", first)
		}
		h.Discard(first)
		h.Discard(second)
		pass(time.Minute)
		if names, _ := h.fake.List(t.Context()); len(names) != 1 {
			t.Errorf("clusters %v, want the next one that waits and neither of those that were used", names)
		}
	})
}

func TestWhoeverFindsNothingGetsTheNextOneAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		time.Sleep(creation / 2)
		name, pooled, took := h.claim(t)
		if pooled || took != creation/2 {
			t.Errorf("pooled %v after %v, want the one that was being made, after %v", pooled, took, creation/2)
		}
		if !slices.Contains(h.fake.running(), name) {
			t.Error("the cluster was handed out paused")
		}
		h.Discard(name)
	})
}

func TestNobodyGetsAClusterThatIsOfNoUse(t *testing.T) {
	for name, spoil := range map[string]func(h *house, cluster string){
		"not fresh": func(h *house, cluster string) {
			h.opts.Fresh = func(_ context.Context, c *clusters.Cluster) error {
				if c.Name == cluster {
					return errors.New("used")
				}
				return nil
			}
		},
		"does not resume": func(h *house, cluster string) { h.fake.stuck[cluster] = errors.New("frozen for good") },
		"deleted":         func(h *house, cluster string) { _ = h.fake.Delete(context.Background(), cluster) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t, 2)
				pass(time.Minute)
				spoilt := h.first()
				spoil(h, spoilt)
				got, pooled, _ := h.claim(t)
				if got == spoilt || !pooled {
					t.Errorf("claimed %s, pooled %v; want the other one that waited, not %s", got, pooled, spoilt)
				}
				h.Discard(got)
				pass(time.Minute)
				if names, _ := h.fake.List(t.Context()); len(names) != 2 || slices.Contains(names, spoilt) {
					t.Errorf("clusters %v, want two others than %s", names, spoilt)
				}
			})
		})
	}
}

func TestAClusterThatVanishedIsReplacedBeforeAnybodyAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		pass(time.Minute)
		gone := h.first()
		_ = h.fake.Delete(t.Context(), gone)
		pass(time.Minute)
		if _, pooled, took := h.claim(t); !pooled || took > 0 {
			t.Errorf("pooled %v after %v, want another one that waits", pooled, took)
		}
		pass(time.Minute)
		for _, name := range h.fake.running() {
			h.Discard(name)
		}
	})
}

func TestAMachineThatMakesNoClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		h.fake.fails = errors.New("no engine")
		if _, _, err := h.Claim(t.Context()); !errors.Is(err, h.fake.fails) {
			t.Errorf("Claim() = %v, want what kept the cluster from being made", err)
		}
		pass(time.Hour)
		h.fake.mu.Lock()
		h.fake.fails = nil
		h.fake.mu.Unlock()
		if name, _, took := h.claim(t); took > creation+maxRetryDelay {
			t.Errorf("the engine came back, and the claim took %v", took)
		} else {
			h.Discard(name)
		}
	})
}

// An engine that is restarted takes nothing away, and whoever comes back to it has to.
func TestWhatCouldNotBeRemovedIsRemovedLater(t *testing.T) {
	for name, back := range map[string]bool{"by the health check": true, "at the end": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := open(t, 1)
				pass(time.Minute)
				used, _, _ := h.claim(t)
				h.fake.engine(errors.New("no engine"))
				h.Discard(used)
				pass(time.Minute) // meanwhile the next one is half made
				left, _ := h.fake.List(t.Context())
				if len(left) < 2 {
					t.Fatalf("left while the engine is away: %v, want the discarded one and what was being made", left)
				}
				h.fake.engine(nil)
				if !back {
					return // what h was opened with looks that nothing is left
				}
				pass(2 * healthPeriod)
				if now, _ := h.fake.List(t.Context()); slices.ContainsFunc(now, func(n string) bool { return slices.Contains(left, n) }) {
					t.Errorf("still there after the engine came back: %v of %v", now, left)
				}
			})
		})
	}
}

func TestWhoeverGivesUpLeavesTheClusterToThePool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, _, err := h.Claim(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Claim() = %v, want the end of the caller's context", err)
		}
		pass(time.Hour)
		if h.Waiting() != 1 || len(h.fake.running()) > 0 || h.fake.most != 1 {
			t.Errorf("%d wait, %v run, up to %d were there; want one, asleep", h.Waiting(), h.fake.running(), h.fake.most)
		}
	})
}

func TestThePoolGivesUpAClusterWhenMemoryIsShort(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		pass(time.Minute)
		h.memory.Store(shortMemory - 1)
		pass(time.Minute)
		if h.Waiting() != 0 {
			t.Errorf("%d wait although memory is short", h.Waiting())
		}
		h.memory.Store(enoughMemory - 1)
		pass(time.Hour)
		if h.Waiting() != 0 {
			t.Errorf("%d wait: the pool filled up again at once, and would be short again", h.Waiting())
		}
		name, _, _ := h.claim(t)
		h.Discard(name)
		h.memory.Store(enoughMemory)
		pass(time.Minute)
		if h.Waiting() != 2 {
			t.Errorf("%d wait, want 2 now that there is memory", h.Waiting())
		}
	})
}

func TestAnOldClusterIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		pass(time.Minute)
		old := h.first()
		pass(maxAge + time.Hour)
		if h.Waiting() != 1 || h.first() == old {
			t.Errorf("%s still waits after %v", old, maxAge)
		}
	})
}

// awake is a provider that cannot pause.
type awake struct{ clusters.Provider }

func TestWithoutAPoolEachClaimMakesItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{paused: map[string]bool{}}
		for name, p := range map[string]*Pool{
			"size 0":          Start(clusters.NewOwned(t.TempDir(), f), Options{}),
			"no way to pause": Start(clusters.NewOwned(t.TempDir(), awake{f}), Options{Size: 3}),
		} {
			pass(time.Hour)
			c, pooled, err := p.Claim(t.Context())
			if err != nil || pooled || len(f.running()) != 1 {
				t.Errorf("%s: Claim() = %v, pooled %v, %v with %v running", name, c, pooled, err, f.running())
				continue
			}
			p.Discard(c.Name)
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
		if names, _ := f.List(t.Context()); len(names) > 0 {
			t.Errorf("left: %v", names)
		}
	})
}

func TestAClosedPoolHandsOutNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		time.Sleep(creation / 2)
		if err := h.Close(); err != nil {
			t.Error(err)
		}
		if _, _, err := h.Claim(t.Context()); err == nil {
			t.Error("Claim() = nil error from a pool that was closed")
		}
	})
}
