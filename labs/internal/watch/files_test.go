package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

const (
	// soon bounds the wait for a change that has to come, however busy the machine. never is a poll that does not come.
	soon, never = time.Minute, time.Hour
	testPeriod  = 20 * time.Millisecond
)

// place is a workspace that is watched.
type place struct {
	*testing.T
	dir     string
	changes <-chan Change
}

// inBothWays runs a test in a workspace that holds the files. Events and polling each have to do without the other.
func inBothWays(t *testing.T, files []string, test func(p place)) {
	t.Helper()
	for name, events := range map[string]bool{"by events alone": true, "by polling alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{T: t, dir: t.TempDir()}
			for _, f := range files {
				p.write(f, "package "+filepath.Base(f))
			}
			w := &watcher{dir: p.dir, period: testPeriod, debounce: 2 * testPeriod, maxBurst: maxBurst}
			if events {
				var err error
				if w.events, err = fsnotify.NewWatcher(); err != nil {
					t.Fatal(err)
				}
				w.period = never
			}
			p.changes = w.start(t.Context())
			test(p)
		})
	}
}

func (p place) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p place) write(name, text string) {
	p.Helper()
	coursetest.Write(p, p.dir, name, text)
}

// replace writes as editors do: a new file takes the place of the old one. There is no moment in which it is empty.
func (p place) replace(name, text string) {
	p.Helper()
	p.write(name+"~", text)
	if err := os.Rename(p.path(name+"~"), p.path(name)); err != nil {
		p.Fatal(err)
	}
}

// tells expects one change of these files, and so none of others before it.
func (p place) tells(want ...string) {
	p.Helper()
	select {
	case c := <-p.changes:
		if diff := cmp.Diff(want, c.Paths); diff != "" {
			p.Errorf("changed (-want +got):\n%s", diff)
		}
	case <-time.After(soon):
		p.Fatalf("no change was noticed, want one of %v", want)
	}
}

func TestSavesAreNoticed(t *testing.T) {
	names := []string{
		"cmd/main.go", "go.mod", "go.sum", "config/crd/bases/memcacheds.yaml", "config/rbac/role.yml", "internal/a.json",
		"internal/a.tmpl", "api/bin/a.go", // only the workspace's own bin is what a build leaves
	}
	inBothWays(t, names, func(p place) {
		for _, name := range names {
			for _, text := range []string{"another", "a third"} { // the second meets a new inode
				p.replace(name, text)
				p.tells(name)
			}
		}
	})
}

func TestNewFoldersAreFollowed(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		p.write("internal/deep/notes", "no change")
		p.replace("cmd/main.go", "package other") // its folder is followed once this was known
		p.tells("cmd/main.go")
		p.replace("internal/deep/a.go", "package deep")
		p.tells("internal/deep/a.go")
		if err := os.RemoveAll(p.path("internal")); err != nil {
			p.Fatal(err)
		}
		p.tells("internal/deep/a.go")
	})
}

func TestBurstIsOneChange(t *testing.T) {
	t.Parallel()
	p := place{T: t, dir: t.TempDir()}
	var want []string
	p.write("a00.go", "package v1")
	w := &watcher{dir: p.dir, period: testPeriod, debounce: 100 * testPeriod, maxBurst: soon} // nobody needs so long to write
	p.changes = w.start(t.Context())
	for i := range 20 {
		name := fmt.Sprintf("a%02d.go", i)
		p.replace(name, "package v1alpha1")
		want = append(want, name)
	}
	p.tells(want...)
}

// Somebody who saves without end gets an answer all the same.
func TestEndlessBurstIsToldInParts(t *testing.T) {
	t.Parallel()
	p := place{T: t, dir: t.TempDir()}
	w := &watcher{dir: p.dir, period: testPeriod, debounce: testPeriod, maxBurst: 3 * testPeriod}
	p.changes = w.start(t.Context())
	for i, end := 0, time.After(soon); ; i++ {
		p.replace("main.go", fmt.Sprint("package main // ", i))
		select {
		case <-p.changes:
			return
		case <-end:
			t.Fatal("no change was told")
		default:
		}
	}
}

func TestOtherFilesAndSameContentAreNoChange(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go", "bin/tool/a.go"}, func(p place) {
		for _, name := range []string{
			".git/index", ".git/a.go", ".idea/a.json", "bin/manager", "bin/tool/a.go", "dist/install.yaml", "Makefile", "README.md",
			"cmd/.main.go.swp", "cmd/main.go~", "cmd/#main.go#", "cmd/.#main.go", "cmd/4913", "cmd/main.go.1234", "cmd/main_test.go",
			"cmd/testdata/a.go", "cmd/_old/a.go", "vendor/a/a.go", "manager.log", "cover.out",
		} {
			p.write(name, "another")
		}
		p.replace("cmd/main.go", "package main.go") // as it was
		p.replace("go.mod", "module mine")
		p.tells("go.mod")
	})
}

// A workspace that is away is nothing to check: a network drive that was lost, a folder that is being swapped.
func TestWorkspaceThatIsAwayHasNotChanged(t *testing.T) {
	dir, link := t.TempDir(), filepath.Join(t.TempDir(), "workspace")
	p := place{T: t, dir: dir}
	p.write("cmd/main.go", "package main")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	w := &watcher{dir: link}
	before := w.look(snapshot{})
	if len(before) != 1 {
		t.Errorf("behind a link there are %v", before)
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if paths := changed(before, w.look(before)); len(paths) > 0 {
		t.Errorf("changed: %v", paths)
	}
}
