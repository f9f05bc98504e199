package room

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
)

func TestWhoGetsWhichCluster(t *testing.T) {
	state := t.TempDir()
	names := filepath.Join(t.TempDir(), "names.txt")
	if err := os.WriteFile(names, []byte("\ufeffAna\r\n\n 김민준 \nana\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fill := func(r *Room) error {
		err := r.Name(names)
		r.Number(4)
		r.Number(3) // nobody is sent away
		return err
	}
	r, err := Update(state, fill)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, name := range []string{"ANA", "김민준", "Bob", "Bob", "Cyd", "Dan"} {
		saved, err := Update(state, func(saved *Room) error {
			l := saved.Join(name)
			if l == nil {
				got = append(got, name+" none")
				return nil
			}
			got = append(got, name+" "+r.Learners[slices.IndexFunc(r.Learners, func(o Learner) bool { return o.Cluster == l.Cluster })].Name)
			return nil
		})
		if err != nil || len(saved.Learners) != 4 {
			t.Fatalf("%+v, %v", saved, err)
		}
	}
	want := []string{"ANA Ana", "김민준 김민준", "Bob learner-1", "Bob learner-1", "Cyd learner-2", "Dan none"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	// make classroom, run again meanwhile, changes nothing of that.
	saved, err := Update(state, fill)
	if err != nil || len(saved.Learners) != 4 || saved.Find("Bob") == nil {
		t.Errorf("%+v, %v", saved, err)
	}
}

// fake is a provider in memory.
type fake struct {
	clusters.Provider
	mu    sync.Mutex
	there map[string]bool
	fails string // a name that cannot be made
}

func (f *fake) Create(_ context.Context, name string, _ clusters.Spec) (*clusters.Cluster, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if name == f.fails {
		return nil, errors.New("no luck")
	}
	f.there[name] = true
	return &clusters.Cluster{Name: name, Nodes: 1}, nil
}

func (f *fake) Delete(_ context.Context, name string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.there, name)
	return nil
}

func (f *fake) List(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var names []string
	for name := range f.there {
		names = append(names, name)
	}
	return names, nil
}

func (f *fake) Identity() string                   { return "fake" }
func (f *fake) Keep(context.Context, string) error { return nil }

func TestRunAgainItMakesWhatIsMissing(t *testing.T) {
	ctx := t.Context()
	r := &Room{}
	r.Number(3)
	f := &fake{there: map[string]bool{}, fails: r.Learners[1].Cluster}
	owned, err := clusters.New(t.TempDir(), clusters.WithProvider(f))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var told []string
	tell := func(name, what string) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, name+" "+what)
	}
	err = r.Up(ctx, owned, clusters.Spec{}, tell)
	if err == nil || !strings.Contains(err.Error(), "learner-2: ") || len(f.there) != 2 {
		t.Errorf("%d clusters, %v", len(f.there), err)
	}
	f.fails, told = "", nil
	if err := r.Up(ctx, owned, clusters.Spec{}, tell); err != nil || len(f.there) != 3 {
		t.Errorf("%d clusters, %v", len(f.there), err)
	}
	if diff := cmp.Diff([]string{"learner-2 creating", "learner-2 ready"}, told); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFits(t *testing.T) {
	cores := runtime.GOMAXPROCS(0)
	for name, tc := range map[string]struct {
		embedded bool
		free     uint64
		there    int
		more     int
		short    string
	}{
		"kind":                {false, 1<<30 + 3*kindMemory, 0, 3, "memory"},
		"embedded":            {true, 1<<30 + 3*kindMemory, 0, 2, "memory"},
		"nothing is free":     {true, 1 << 20, 0, 0, "memory"},
		"many for the cores":  {true, 1 << 50, 4, perCore*cores - 4, "processor cores"},
		"more than the cores": {true, 1 << 50, 1000, 0, "processor cores"},
	} {
		if more, short := Fits(tc.embedded, tc.free, tc.there); more != tc.more || short != tc.short {
			t.Errorf("%s: %d, %s", name, more, short)
		}
	}
}
