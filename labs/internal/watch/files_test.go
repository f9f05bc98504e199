package watch

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// place is a workspace that is watched.
type place struct {
	*testing.T
	dir     string
	changes <-chan struct{}
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

// tells expects one change.
func (p place) tells() {
	p.Helper()
	select {
	case <-p.changes:
	case <-time.After(time.Minute):
		p.Fatal("no change was noticed")
	}
	p.isSilent()
}

// isSilent expects none.
func (p place) isSilent() {
	p.Helper()
	select {
	case <-p.changes:
		p.Error("a change was told")
	case <-time.After(5 * period):
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
			p.tells()
		}
		if err := os.RemoveAll(filepath.Join(p.dir, "internal", "new")); err != nil {
			p.Fatal(err)
		}
		p.tells()
	})
}

func TestBurstIsOneChange(t *testing.T) {
	watched(t, nil, func(p place) {
		for i := range 20 {
			p.write(fmt.Sprintf("a%02d.go", i), "package v1alpha1")
			<-time.After(period * 9 / 10)
		}
		p.tells()
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
		p.isSilent()
		p.write("go.mod", "module mine")
		p.tells()
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
	if now := look(link, before); !maps.Equal(before, now) {
		t.Errorf("changed: %v", now)
	}
}
