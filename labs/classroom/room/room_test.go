package room

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
)

const (
	// creation is how long the fake takes to make a cluster, and boot how long a restarted one takes to be healthy.
	creation = 10 * time.Second
	boot     = 20 * time.Second
)

// fake is a provider in memory.
type fake struct {
	mu       sync.Mutex
	machines map[string]*machine
	working  int // how many creations and restarts are under way
	most     int // the largest number that ever was
	calls    []string
	fails    map[string]int // how many of the next creations fail
	beyond   map[string]bool
	away     error // what the engine says instead of anything else
}

// machine is a cluster of the fake.
type machine struct {
	running bool
	full    bool
	broken  error     // what is wrong with it although it runs
	healthy time.Time // when it is, if it runs and is not broken
}

func (f *fake) enter(call, name string) (leave func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, call+" "+name)
	f.working++
	f.most = max(f.most, f.working)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.working--
	}
}

func (f *fake) Create(ctx context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	defer f.enter("create", name)()
	f.set(name, &machine{}) // a half-made one
	select {
	case <-time.After(creation):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fails[name] > 0 {
		f.fails[name]--
		return nil, errors.New("no luck with " + name)
	}
	f.machines[name] = &machine{running: true}
	return &clusters.Cluster{Name: name, Nodes: 1}, nil
}

func (f *fake) set(name string, m *machine) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.machines[name] = m
}

func (f *fake) Delete(_ context.Context, name string) error {
	defer f.enter("delete", name)()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.away != nil {
		return f.away
	}
	delete(f.machines, name)
	return nil
}

func (f *fake) List(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	names := []string{}
	for name := range f.machines {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, f.away
}

func (f *fake) LoadImageArchive(context.Context, string, string) error { return nil }
func (f *fake) CollectLogs(context.Context, string, string) error      { return nil }

func (f *fake) Restart(_ context.Context, name string) error {
	defer f.enter("restart", name)()
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.machines[name]
	switch {
	case f.away != nil:
		return f.away
	case !ok:
		return errors.New("no such cluster")
	case !f.beyond[name]:
		*m = machine{running: true, healthy: time.Now().Add(boot)}
	}
	return nil
}

func (f *fake) Nodes(_ context.Context, name string) ([]clusters.Node, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.machines[name]
	if !ok {
		return nil, nil
	}
	node := clusters.Node{Name: name, Running: m.running}
	if m.full {
		node.FreeDisk = 1
	}
	return []clusters.Node{node}, nil
}

func (f *fake) health(_ context.Context, _ clusters.Provider, c *clusters.Cluster) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m, ok := f.machines[c.Name]
	switch {
	case f.away != nil:
		return f.away
	case !ok:
		return errors.New("it is gone")
	case !m.running:
		return errors.New("it is stopped")
	case m.broken != nil:
		return m.broken
	case time.Now().Before(m.healthy):
		return errors.New("it is starting")
	}
	return nil
}

// house is a room on a fake machine.
type house struct {
	*Room
	fake  *fake
	owned *clusters.Owned
	told  []string
	names map[string]string // by letter
}

// open gives a room of clusters a, b, ... that are called by their letters here.
func open(t *testing.T, limit int) *house {
	t.Helper()
	h := &house{
		fake:  &fake{machines: map[string]*machine{}, fails: map[string]int{}, beyond: map[string]bool{}},
		names: map[string]string{},
	}
	for letter := 'a'; letter <= 'f'; letter++ {
		h.names[string(letter)] = fmt.Sprintf("lab-room-0000000%c", letter)
	}
	h.owned = clusters.NewOwned(t.TempDir(), h.fake)
	h.Room = New(h.owned, Options{
		Purpose: "room", Limit: limit, Healthy: h.fake.health,
		Progress: func(name string, step Step, _ error) {
			h.told = append(h.told, strings.TrimPrefix(name, "lab-room-0000000")+" "+string(step))
		},
	})
	return h
}

func (h *house) list(letters string) []string {
	var names []string
	for _, letter := range letters {
		names = append(names, h.names[string(letter)])
	}
	return names
}

// up is one `up`, and says how each cluster ended.
func (h *house) up(t *testing.T, letters string) string {
	t.Helper()
	return h.upUntil(t.Context(), t, letters)
}

// upUntil is one that may be interrupted.
func (h *house) upUntil(ctx context.Context, t *testing.T, letters string) string {
	t.Helper()
	found, err := h.Look(ctx, h.list(letters))
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, result := range h.Up(ctx, found) {
		steps = append(steps, string(result.Step))
		if (result.Step == Failed) != (result.Err != nil) || (result.Step == Failed) != (result.Cluster == nil) {
			t.Errorf("%+v", result)
		}
	}
	return strings.Join(steps, " ")
}

// quiet forgets what was called and told so far.
func (h *house) quiet() { h.fake.calls, h.fake.most, h.told = nil, 0, nil }

// consistent fails the test when records and clusters are not the same, or a cluster would not be kept.
func (h *house) consistent(t *testing.T, letters string) {
	t.Helper()
	there, _ := h.fake.List(t.Context())
	owners, err := h.owned.List(t.Context())
	var recorded []string
	for _, owner := range owners {
		recorded = append(recorded, owner.Name)
		if !owner.Kept || owner.Purpose != "room" {
			t.Errorf("record %+v", owner)
		}
	}
	want := h.list(letters)
	if err != nil || !slices.Equal(there, want) || !slices.Equal(recorded, want) {
		t.Errorf("there are %v, recorded %v, %v; want %v", there, recorded, err, want)
	}
}

func TestWhatIsMissingIsMadeWithinTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		started := time.Now()
		if got := h.up(t, "abcde"); got != "created created created created created" {
			t.Error(got)
		}
		if took := time.Since(started); h.fake.most != 2 || took != 3*creation {
			t.Errorf("%d at once, done after %v; want 2 and %v", h.fake.most, took, 3*creation)
		}
		h.consistent(t, "abcde")
	})
}

func TestHealthyClustersAreNotTouched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "ab")
		h.quiet()
		if got := h.up(t, "abc"); got != "untouched untouched created" {
			t.Error(got)
		}
		if want := []string{"create " + h.names["c"]}; !slices.Equal(h.fake.calls, want) {
			t.Errorf("the provider was asked for %v, want %v", h.fake.calls, want)
		}
	})
}

func TestAStoppedClusterIsStartedAgainWithAllThatIsInIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "ab")
		h.fake.machines[h.names["a"]].running = false
		h.quiet()
		if got := h.up(t, "ab"); got != "restarted untouched" {
			t.Error(got)
		}
		if want := []string{"restart " + h.names["a"]}; !slices.Equal(h.fake.calls, want) {
			t.Errorf("the provider was asked for %v, want %v", h.fake.calls, want)
		}
		h.consistent(t, "ab")
	})
}

// What a restart does not fix is made anew, under the same name.
func TestAClusterBeyondRepairIsReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, spoil := range map[string]func(h *house, name string){
			"it is gone": func(h *house, name string) { delete(h.fake.machines, name) },
			"it stays broken": func(h *house, name string) {
				h.fake.machines[name].broken, h.fake.beyond[name] = errors.New("the API server does not answer"), true
			},
		} {
			h := open(t, 2)
			h.up(t, "ab")
			spoil(h, h.names["a"])
			h.quiet()
			if got := h.up(t, "ab"); got != "replaced untouched" {
				t.Errorf("%s: %s", name, got)
			}
			if want := []string{"b untouched", "a restarting", "a replacing", "a replaced"}; !sameWords(h.told, want) {
				t.Errorf("%s: told of %v, want %v", name, h.told, want)
			}
			h.consistent(t, "ab")
		}
	})
}

func sameWords(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// A learner's work is not thrown away because their cluster was slow to answer.
func TestAClusterThatIsOnlySlowIsLeftAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "a")
		h.fake.machines[h.names["a"]].healthy = time.Now().Add(grace - lookAgain)
		h.quiet()
		if got := h.up(t, "a"); got != "untouched" || len(h.fake.calls) > 0 {
			t.Errorf("%s, and the provider was asked for %v", got, h.fake.calls)
		}
	})
}

func TestAClusterThatRunsAndIsBrokenIsStartedAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "a")
		h.fake.machines[h.names["a"]].broken = errors.New("kubelet does not run")
		if got := h.up(t, "a"); got != "restarted" {
			t.Error(got)
		}
	})
}

// Where there is no space, a new cluster has none either, and what is in the old one would be lost for nothing.
func TestAFullDiskIsNoReasonToReplace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "a")
		*h.fake.machines[h.names["a"]] = machine{running: true, full: true, broken: errors.New("no space left")}
		h.quiet()
		if got := h.up(t, "a"); got != "failed" || len(h.fake.calls) > 0 {
			t.Errorf("%s, and the provider was asked for %v", got, h.fake.calls)
		}
	})
}

func TestAnEngineThatIsAwayCostsNobodyTheirCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "a")
		found, err := h.Look(t.Context(), h.list("a"))
		if err != nil {
			t.Fatal(err)
		}
		h.fake.away = errors.New("the engine does not answer")
		if _, err := h.Look(t.Context(), h.list("a")); !errors.Is(err, h.fake.away) {
			t.Errorf("Look() = %v", err)
		}
		h.quiet()
		found[0].State, found[0].Err = Broken, h.fake.away
		if results := h.Up(t.Context(), found); results[0].Step != Failed {
			t.Errorf("%+v", results)
		}
		if slices.ContainsFunc(h.fake.calls, func(call string) bool { return strings.HasPrefix(call, "delete") }) {
			t.Errorf("the provider was asked for %v", h.fake.calls)
		}
	})
}

func TestOneThatFailsIsTriedAgainAfterTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		h.fake.fails[h.names["a"]] = 1
		if got := h.up(t, "abc"); got != "created created created" {
			t.Error(got)
		}
		want := []string{
			"a creating", "a retrying", "b creating", "b created", "c creating", "c created", "a creating", "a created",
		}
		if diff := cmp.Diff(want, h.told); diff != "" {
			t.Errorf("told (-want +got):\n%s", diff)
		}
		h.consistent(t, "abc")
	})
}

func TestOneThatFailsTwiceStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.fake.fails[h.names["b"]] = 9
		found, err := h.Look(t.Context(), h.list("abc"))
		if err != nil {
			t.Fatal(err)
		}
		results := h.Up(t.Context(), found)
		if results[0].Step != Created || results[1].Step != Failed || results[2].Step != Created {
			t.Errorf("%+v", results)
		}
		if err := results[1].Err; err == nil || !strings.Contains(err.Error(), "no luck") {
			t.Errorf("why it failed: %v", err)
		}
		if h.fake.fails[h.names["b"]] != 7 {
			t.Errorf("%d tries, want 2", 9-h.fake.fails[h.names["b"]])
		}
		h.consistent(t, "ac")
	})
}

// A replacement that takes two tries still cost the learner what was in the cluster, and is told so.
func TestAReplacementThatWasTriedTwiceIsAReplacement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "a")
		delete(h.fake.machines, h.names["a"])
		h.fake.fails[h.names["a"]] = 1
		if got := h.up(t, "a"); got != "replaced" {
			t.Error(got)
		}
	})
}

func TestWhatCannotBePreparedIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		prepared := 0
		h.opts.Spec.Prepare = func(context.Context, *clusters.Cluster) error {
			if prepared++; prepared == 1 {
				return errors.New("no such image")
			}
			return nil
		}
		if got := h.up(t, "a"); got != "created" || prepared != 2 {
			t.Errorf("%s after %d preparations", got, prepared)
		}
		h.opts.Spec.Prepare = func(context.Context, *clusters.Cluster) error { return errors.New("no such image") }
		if got := h.up(t, "ab"); got != "untouched failed" {
			t.Error(got)
		}
		h.consistent(t, "a")
	})
}

// Ctrl-C: what is ready stays, what is being made goes, and nothing more begins.
func TestCancelLeavesNothingHalfMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		ctx, cancel := context.WithTimeout(t.Context(), creation+creation/2)
		defer cancel()
		started := time.Now()
		if got := h.upUntil(ctx, t, "abcdef"); got != "created created failed failed failed failed" {
			t.Error(got)
		}
		if took := time.Since(started); took > 2*creation {
			t.Errorf("it ended after %v", took)
		}
		h.consistent(t, "ab")
		for _, step := range []string{"failed", "retrying", "e creating"} {
			if told := strings.Join(h.told, ", "); strings.Contains(told, step) {
				t.Errorf("told of %s", told)
			}
		}
	})
}

// A restart that was interrupted is not a cluster that was given up.
func TestCancelDoesNotReplaceWhatIsBeingFixed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "a")
		h.fake.machines[h.names["a"]].running = false
		ctx, cancel := context.WithTimeout(t.Context(), boot/2)
		defer cancel()
		if got := h.upUntil(ctx, t, "a"); got != "failed" {
			t.Error(got)
		}
		h.consistent(t, "a")
		pass(boot)
		if got := h.up(t, "a"); got != "untouched" {
			t.Error(got)
		}
	})
}

func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// While one process makes a cluster, another one's list says so, and leaves it alone.
func TestAClusterThatAnotherProcessMakesIsLeftToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		done := make(chan string)
		go func() { done <- h.up(t, "a") }()
		pass(creation / 2)
		other := New(h.owned, Options{Purpose: "room", Healthy: h.fake.health})
		found, err := other.Look(t.Context(), h.list("ab"))
		if err != nil || found[0].State != Making || found[1].State != Missing {
			t.Fatalf("%+v, %v", found, err)
		}
		results := other.Up(t.Context(), found[:1])
		if results[0].Step != Failed || !strings.Contains(results[0].Err.Error(), "process ") {
			t.Errorf("%+v", results)
		}
		if got := <-done; got != "created" {
			t.Error(got)
		}
		h.consistent(t, "a")
	})
}

func TestDownLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "abc")
		h.fake.machines[h.names["b"]].running = false
		if err := h.Down(t.Context(), h.list("abcd")); err != nil { // d was never made
			t.Error(err)
		}
		h.consistent(t, "")
	})
}

func TestDownTellsWhatItCouldNotRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.up(t, "ab")
		h.quiet()
		h.fake.away = errors.New("the engine does not answer")
		if err := h.Down(t.Context(), h.list("ab")); !errors.Is(err, h.fake.away) {
			t.Errorf("Down() = %v", err)
		}
		if want := []string{"a failed", "b failed"}; !sameWords(h.told, want) {
			t.Errorf("told of %v", h.told)
		}
		h.fake.away = nil
		h.consistent(t, "ab")
	})
}
