package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// place is a workspace that is watched.
type place struct {
	*testing.T
	dir     string
	changes <-chan Change
}

// watched runs a test, within a bubble of its own time, in a workspace that holds the files.
func watched(t *testing.T, files []string, test func(p place)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := place{T: t, dir: t.TempDir()}
		for _, f := range files {
			p.write(f, "package "+filepath.Base(f))
		}
		p.changes = Files(t.Context(), p.dir)
		test(p)
	})
}

func (p place) write(name, text string) {
	p.Helper()
	coursetest.Write(p, p.dir, name, text)
}

// tells expects one change of these files, and so none of others before it.
func (p place) tells(want ...string) {
	p.Helper()
	select {
	case c := <-p.changes:
		if diff := cmp.Diff(want, c.Paths); diff != "" {
			p.Errorf("changed (-want +got):\n%s", diff)
		}
	case <-time.After(time.Minute):
		p.Fatalf("no change was noticed, want one of %v", want)
	}
}

func TestSavesAreNoticed(t *testing.T) {
	names := []string{
		"cmd/main.go", "go.mod", "go.sum", "config/crd/bases/memcacheds.yaml", "config/rbac/role.yml", "internal/a.json",
		"internal/a.tmpl", "api/bin/a.go", // only the workspace's own bin is what a build leaves
	}
	watched(t, names, func(p place) {
		for _, name := range append(names, "internal/new/a.go") {
			p.write(name, "another")
			p.tells(name)
		}
		if err := os.RemoveAll(filepath.Join(p.dir, "internal", "new")); err != nil {
			p.Fatal(err)
		}
		p.tells("internal/new/a.go")
	})
}

func TestBurstIsOneChange(t *testing.T) {
	watched(t, nil, func(p place) {
		var want []string
		begun := time.Now()
		for i := range 20 {
			name := fmt.Sprintf("a%02d.go", i)
			p.write(name, "package v1alpha1")
			want = append(want, name)
			<-time.After(period * 9 / 10)
		}
		select {
		case c := <-p.changes:
			if diff := cmp.Diff(want, c.Paths); diff != "" || c.Noticed.Sub(begun) > 2*period {
				t.Errorf("noticed after %s, changed (-want +got):\n%s", c.Noticed.Sub(begun), diff)
			}
		case <-time.After(time.Minute):
			t.Error("no change was noticed")
		}
	})
}

func TestOtherFilesAndSameContentAreNoChange(t *testing.T) {
	watched(t, []string{"cmd/main.go", "bin/tool/a.go"}, func(p place) {
		for _, name := range []string{
			".git/index", ".git/a.go", ".idea/a.json", "bin/manager", "bin/tool/a.go", "dist/install.yaml", "Makefile", "README.md",
			"cmd/.main.go.swp", "cmd/main.go~", "cmd/#main.go#", "cmd/.#main.go", "cmd/4913", "cmd/main.go.1234", "cmd/main_test.go",
			"cmd/testdata/a.go", "cmd/_old/a.go", "vendor/a/a.go", "manager.log", "cover.out",
		} {
			p.write(name, "another")
		}
		p.write("cmd/main.go", "package main.go") // as it was
		<-time.After(3 * period)
		p.write("go.mod", "module mine")
		p.tells("go.mod")
	})
}

// A workspace that is away is nothing to check: a network drive that was lost, a folder that is being swapped.
func TestUnreadableWorkspaceHasNotChanged(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "workspace")
	coursetest.Write(t, dir, "cmd/main.go", "package main")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	before := look(link, snapshot{})
	if len(before) != 1 {
		t.Errorf("behind a link there are %v", before)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if paths := changed(before, look(link, before)); len(paths) > 0 {
		t.Errorf("changed: %v", paths)
	}
}
