//go:build !windows

package bench

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/course"
)

// fakeProvider makes clusters that are names, and remembers what it was asked.
type fakeProvider struct {
	mu    sync.Mutex
	names []string
	asked []string
	specs []clusters.Spec
	// onLoad happens when an image is to be loaded.
	onLoad func() error
	// fails is what creations fail with.
	fails error
}

func (p *fakeProvider) Create(_ context.Context, name string, spec clusters.Spec) (*clusters.Cluster, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fails != nil {
		return nil, p.fails
	}
	p.names, p.specs, p.asked = append(p.names, name), append(p.specs, spec), append(p.asked, "create")
	return &clusters.Cluster{Name: name, RealPods: true, Nodes: 1}, nil
}

func (p *fakeProvider) Delete(ctx context.Context, name string) error {
	if ctx.Err() != nil {
		return ctx.Err() // an interrupt must not reach the removal
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked = append(p.asked, "delete")
	p.names = slices.DeleteFunc(p.names, func(n string) bool { return n == name })
	return nil
}

func (p *fakeProvider) List(context.Context) ([]string, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.names), nil
}

func (p *fakeProvider) LoadImageArchive(context.Context, string, string) error {
	p.asked = append(p.asked, "load")
	return p.onLoad()
}

func (p *fakeProvider) CollectLogs(context.Context, string, string) error { return nil }

// The programs that the way by hand calls: both note their calls beside themselves, because a build has a clean
// environment, and the engine knows its images by a file.
const (
	fakeGo = `#!/bin/sh
echo "go $1" >> "${0%/*}/calls"
case $1 in
env) echo '{}';;
build) while [ "$1" != -o ]; do shift; done; echo program > "$2";;
test) echo "the suite cannot run"; exit 1;;
esac
`
	fakeEngine = `#!/bin/sh
echo "engine $1 $2" >> "${0%/*}/calls"
case "$1 $2" in
"import --change") cat > "${0%/*}/image";;
"image ls") if [ -e "${0%/*}/image" ]; then echo sha256:1; fi;;
"image rm") rm "${0%/*}/image";;
esac
`
)

// byHand gives a workbench whose programs are fakes in dir.
func byHand(t *testing.T, p *fakeProvider) (w *Workbench, dir string) {
	t.Helper()
	c, err := course.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	solution := filepath.Join(dir, "solution")
	if err := os.Mkdir(solution, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"go": fakeGo, "engine": fakeEngine, "solution/go.mod": "module x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	state := filepath.Join(dir, ".lab")
	return &Workbench{
		Course: c, State: state, Engine: "engine", Stock: clusters.NewOwned(state, p), Solution: solution,
		NodeImage: nodeimage.Image{Ref: "node:v1", HasOperand: true},
	}, dir
}

// nothingLeft fails when there is still a cluster, a record of one, or the image.
func nothingLeft(t *testing.T, w *Workbench, p *fakeProvider, dir string) {
	t.Helper()
	if owners, err := w.Stock.List(context.WithoutCancel(t.Context())); err != nil || len(owners) > 0 || len(p.names) > 0 {
		t.Errorf("clusters %q, records %v, %v, want none left", p.names, owners, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "image")); err == nil {
		t.Error("the image of the manager is left")
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "operator-lab-stock-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestTheWayByHandHasItsStepsInOrder(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := &fakeProvider{onLoad: func() error { return nil }}
	w, dir := byHand(t, p)
	_, err := w.stockVerdict(t.Context(), 1)
	if err == nil || !strings.Contains(err.Error(), "the suite cannot run") {
		t.Errorf("stockVerdict() = %v, want what go test said", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "calls"))
	if err != nil {
		t.Fatal(err)
	}
	calls := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(data)), "\n"), func(c string) bool { return c == "go env" })
	want := []string{"go build", "engine import --change", "engine save --output", "engine image ls", "engine image rm", "go test", "engine ps --all"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("programs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"create", "load", "delete"}, p.asked); diff != "" {
		t.Errorf("provider (-want +got):\n%s", diff)
	}
	if string(p.specs[0].Config) != string(clusters.StockConfig()) || p.specs[0].NodeImage != "node:v1" {
		t.Errorf("spec = %+v, want kind's own configuration on the same node image", p.specs[0])
	}
	nothingLeft(t, w, p, dir)
}

func TestAnInterruptLeavesNothingOfTheWayByHand(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ctx, interrupt := context.WithCancel(t.Context())
	p := &fakeProvider{onLoad: func() error { interrupt(); return ctx.Err() }}
	w, dir := byHand(t, p)
	if _, err := w.stockVerdict(ctx, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("stockVerdict() = %v, want the interrupt", err)
	}
	nothingLeft(t, w, p, dir)
}

// A room that is too large says nothing about the others.
func TestANumberThatIsNotBorneDoesNotEndTheRun(t *testing.T) {
	p := &fakeProvider{fails: errors.New("too many")}
	w, dir := byHand(t, p)
	crowd := Crowd{On: "kind", Owned: w.Stock, Counts: []int{2, 3}, Free: func(context.Context) map[doctor.Resource]doctor.Supply { return nil }}
	failures, err := w.Grow(t.Context(), []Crowd{crowd}, func(g Growth) { t.Errorf("told %+v, want nothing", g) })
	if err != nil || len(failures) != 2 || failures[1].Subject != "3 kind" {
		t.Errorf("Grow() = %v, %v, want both as failures", failures, err)
	}
	nothingLeft(t, w, p, dir)
}

func TestAnInterruptLeavesNoneOfTheClustersSideBySide(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	p := &fakeProvider{}
	w, dir := byHand(t, p)
	w.Settle = time.Hour
	crowd := Crowd{Owned: w.Stock, Counts: []int{4, 8}, Free: func(context.Context) map[doctor.Resource]doctor.Supply { return nil }}
	go func() {
		defer interrupt()
		for tick := time.NewTicker(time.Millisecond); ctx.Err() == nil; <-tick.C {
			if all, err := p.List(ctx); err == nil && len(all) == 4 {
				return
			}
		}
	}()
	if _, err := w.Grow(ctx, []Crowd{crowd}, func(g Growth) { t.Errorf("told %+v, want nothing", g) }); !errors.Is(err, context.Canceled) {
		t.Errorf("Grow() = %v, want the interrupt", err)
	}
	if len(p.specs) != 4 {
		t.Errorf("%d clusters were made, want the four of the first size", len(p.specs))
	}
	nothingLeft(t, w, p, dir)
}

// fakePool hands out clusters of a provider, and says what is asked of it.
type fakePool struct {
	owned *clusters.Owned
	ready []*clusters.Cluster
	asked []string
	cold  bool // its clusters have not been waiting
}

func (p *fakePool) Rest(ctx context.Context) error {
	p.asked = append(p.asked, "rest")
	if ctx.Err() != nil || len(p.ready) > 0 {
		return ctx.Err()
	}
	c, err := p.owned.Create(ctx, "pool", clusters.Spec{}, false)
	p.ready = append(p.ready, c)
	return err
}

func (p *fakePool) Claim(context.Context) (*clusters.Cluster, bool, error) {
	p.asked = append(p.asked, "claim")
	c := p.ready[0]
	p.ready = nil
	return c, !p.cold, nil
}

func (p *fakePool) Discard(string) { p.asked = append(p.asked, "discard") }

func (p *fakePool) Expect() {}

// Between two measurements there is neither a used cluster nor one that is being made.
func TestWarmMeasurementsBeginAndEndWithThePoolAtRest(t *testing.T) {
	p := &fakeProvider{}
	w, dir := byHand(t, p)
	pool := &fakePool{owned: w.Stock}
	w.Ours, w.Pool = w.Stock, pool
	var used []string
	judge := func(ctx context.Context, t trial) (Sample, error) {
		c, _, err := t.pool.Claim(ctx)
		used = append(used, c.Name)
		t.pool.Discard(c.Name)
		return Sample{Seconds: 3}, err
	}
	for range 2 {
		samples, err := w.claimed(t.Context(), GreenWarm, judge)
		if err != nil || len(samples) != 2 {
			t.Fatalf("claimed() = %+v, %v, want the verdict and the claim", samples, err)
		}
		if v, c := samples[0], samples[1]; v.Series != GreenWarm || v.Seconds != 3 || c.Series != Claim || c.Seconds <= 0 {
			t.Errorf("samples = %+v, want the verdict as it was judged, and the claim", samples)
		}
	}
	if len(used) != 2 || used[0] == used[1] {
		t.Errorf("used %q, want another cluster each time", used)
	}
	if diff := cmp.Diff([]string{"rest", "claim", "rest", "rest", "claim", "rest"}, pool.asked); diff != "" {
		t.Errorf("asked of the pool (-want +got):\n%s", diff)
	}
	broken := errors.New("broken")
	_, err := w.claimed(t.Context(), Red, func(ctx context.Context, t trial) (Sample, error) { _, _ = judge(ctx, t); return Sample{}, broken })
	if !errors.Is(err, broken) {
		t.Errorf("claimed() = %v, want the judge's error", err)
	}
	pool.cold = true
	if samples, err := w.claimed(t.Context(), GreenWarm, judge); err == nil {
		t.Errorf("claimed() = %+v on a cluster that had not been waiting, want an error", samples)
	}
	waits := pool.ready[0].Name
	if diff := cmp.Diff([]string{waits}, p.names); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	if err := w.Ours.Delete(t.Context(), waits); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, w, p, dir)
}

func TestWithoutAPoolNothingWarmIsMeasured(t *testing.T) {
	names := func(w *Workbench) (names []string) {
		for _, s := range w.Subjects() {
			names = append(names, s.Name)
		}
		return names
	}
	cold, all := names(&Workbench{}), names(&Workbench{Pool: &fakePool{}})
	if diff := cmp.Diff(append(cold, "warm verdict", "red verdicts"), all); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
