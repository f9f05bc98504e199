package watch

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

const (
	// soon bounds the wait for a change that has to come, however busy the machine.
	soon = time.Minute
	// testQuiet is [quiet], and testPeriod [pollPeriod], for tests. never is a poll that does not come.
	testQuiet, testPeriod = 50 * time.Millisecond, 20 * time.Millisecond
	never                 = time.Hour
)

// place is a workspace that is watched.
type place struct {
	*testing.T
	dir     string
	changes chan Change
}

// ways are the two ways to notice something. Each has to do without the other.
var ways = map[string]func(*Files){
	"by events alone": func(f *Files) { f.period = never },
	"by polling alone": func(f *Files) {
		f.period = testPeriod
		if f.events != nil {
			_ = f.events.Close()
			f.events = nil
		}
	},
}

// inBothWays runs a test in a workspace that holds the files.
func inBothWays(t *testing.T, files []string, test func(p place)) {
	t.Helper()
	for name, only := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{t, t.TempDir(), make(chan Change)}
			for _, f := range files {
				p.write(f, "package "+filepath.Base(f))
			}
			p.watch(p.dir, only)
			test(p)
		})
	}
}

func (p place) watch(dir string, only func(*Files)) {
	p.Helper()
	f := NewFiles(dir)
	if f.events == nil {
		p.Fatal("this machine grants no file events: raise fs.inotify.max_user_instances")
	}
	f.quiet = testQuiet
	only(f)
	ended := make(chan struct{})
	ctx := p.Context() // ends before clean-ups run
	go func() {
		defer close(ended)
		f.Run(ctx, p.changes)
	}()
	p.Cleanup(func() { <-ended })
}

func (p place) path(name string) string { return filepath.Join(p.dir, filepath.FromSlash(name)) }

func (p place) write(name, text string) {
	p.Helper()
	coursetest.Write(p, p.dir, name, text)
}

// replace writes as editors do: a new file that takes the place of the old one. There is no moment in which it is empty.
func (p place) replace(name, text string) {
	p.Helper()
	p.write(name+"~", text)
	if err := os.Rename(p.path(name+"~"), p.path(name)); err != nil {
		p.Fatal(err)
	}
}

// tells expects one change of these files.
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

// tellsNothing waits for a change that must not come, for longer than it takes to tell one.
func (p place) tellsNothing(why string) {
	p.Helper()
	select {
	case c := <-p.changes:
		p.Errorf("%s: told a change of %v", why, c.Paths)
	case <-time.After(3*testQuiet + 500*time.Millisecond):
	}
}

func TestASaveIsNoticed(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		p.write("cmd/main.go", "package other")
		p.tells("cmd/main.go")
		p.write("cmd/main.go", "package third")
		p.tells("cmd/main.go")
	})
}

func TestAFileThatIsReplacedIsNoticed(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		for _, text := range []string{"package second", "package third"} { // the second meets a new inode
			p.replace("cmd/main.go", text)
			p.tells("cmd/main.go")
		}
	})
}

func TestABurstIsOneChange(t *testing.T) {
	for name, only := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{t, t.TempDir(), make(chan Change)}
			over := make(chan time.Time) // the quiet time that ends the burst
			p.watch(p.dir, func(f *Files) {
				only(f)
				f.longest, f.after = never, func(time.Duration) <-chan time.Time { return over }
			})
			var want []string
			for i := range 20 {
				name := fmt.Sprintf("api/v1alpha1/file%02d.go", i)
				p.write(name, "package v1alpha1")
				want = append(want, name)
				time.Sleep(testPeriod / 4) // so that it lasts for some looks
			}
			close(over)
			p.tells(want...)
			p.tellsNothing("the burst that was told")
		})
	}
}

// Somebody who saves without end gets an answer all the same.
func TestABurstThatDoesNotEndIsToldInParts(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		end := time.After(soon)
		for i := 0; ; i++ {
			p.replace("cmd/main.go", fmt.Sprint("package main // ", i))
			select {
			case <-p.changes:
				return
			case <-end:
				p.Fatal("no change was told")
			case <-time.After(testQuiet / 10):
			}
		}
	})
}

func TestANewFolderIsFollowed(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		p.write("internal/controller/deep/a.go", "package deep")
		p.tells("internal/controller/deep/a.go")
		p.write("internal/controller/deep/a.go", "package deeper")
		p.tells("internal/controller/deep/a.go")
		if err := os.RemoveAll(p.path("internal")); err != nil {
			p.Fatal(err)
		}
		p.tells("internal/controller/deep/a.go")
		p.write("internal/controller/deep/a.go", "package again")
		p.tells("internal/controller/deep/a.go")
		p.write("internal/controller/deep/a.go", "package twice")
		p.tells("internal/controller/deep/a.go")
	})
}

func TestWhatNoVerdictDependsOnIsNoChange(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go", "bin/tool/a.go"}, func(p place) {
		for _, name := range []string{
			".git/index", ".git/a.go", ".idea/a.json", "bin/manager", "bin/tool/a.go", "dist/install.yaml", "Makefile", "README.md",
			"cmd/.main.go.swp", "cmd/main.go~", "cmd/#main.go#", "cmd/.#main.go", "cmd/4913", "cmd/main.go.1234", "cmd/main_test.go",
			"cmd/testdata/a.go", "cmd/_old/a.go", "vendor/a/a.go", "manager.log", "cover.out",
		} {
			p.write(name, "another")
		}
		p.tellsNothing("files that matter to nobody")
		p.write("api/bin/a.go", "package bin") // only the workspace's own bin is what a build leaves
		p.tells("api/bin/a.go")
	})
}

func TestWhatAVerdictDependsOnIsAChange(t *testing.T) {
	names := []string{"go.mod", "go.sum", "api/v1alpha1/types.go", "config/crd/bases/memcacheds.yaml", "config/rbac/role.yml", "internal/a.json", "internal/a.tmpl"}
	inBothWays(t, names, func(p place) {
		for _, name := range names {
			p.replace(name, "another")
			p.tells(name)
		}
	})
}

func TestASaveOfTheSameIsNoChange(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		p.replace("cmd/main.go", "package main.go") // as it was
		now := time.Now().Add(time.Minute)
		if err := os.Chtimes(p.path("cmd/main.go"), now, now); err != nil {
			p.Fatal(err)
		}
		p.tellsNothing("the same text")
	})
}

// The file systems of the polling way may give two saves one time.
func TestASaveOfTheSameSizeAndTimeIsNoticed(t *testing.T) {
	inBothWays(t, []string{"cmd/main.go"}, func(p place) {
		info, err := os.Stat(p.path("cmd/main.go"))
		if err != nil {
			p.Fatal(err)
		}
		p.write("cmd/main.go", "PACKAGE main.go")
		if err := os.Chtimes(p.path("cmd/main.go"), info.ModTime(), info.ModTime()); err != nil {
			p.Fatal(err)
		}
		p.tells("cmd/main.go")
	})
}

func TestAWorkspaceBehindALinkIsWatched(t *testing.T) {
	for name, only := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := place{t, t.TempDir(), make(chan Change)}
			p.write("cmd/main.go", "package main")
			link := filepath.Join(t.TempDir(), "workspace")
			if err := os.Symlink(p.dir, link); err != nil {
				t.Fatal(err)
			}
			p.watch(link, only)
			p.write("cmd/main.go", "package other")
			p.tells("cmd/main.go")
		})
	}
}

// A workspace that is away is nothing to check: a network drive that was lost, a folder that is being swapped.
func TestAWorkspaceThatIsAwayHasNotChanged(t *testing.T) {
	p := place{t, filepath.Join(t.TempDir(), "workspace"), make(chan Change)}
	p.write("cmd/main.go", "package main")
	p.watch(p.dir, ways["by polling alone"])
	if err := os.Rename(p.dir, p.dir+"-away"); err != nil {
		t.Fatal(err)
	}
	p.tellsNothing("while it is away")
	if err := os.Rename(p.dir+"-away", p.dir); err != nil {
		t.Fatal(err)
	}
	p.tellsNothing("when it is back as it was")
	p.write("cmd/main.go", "package other")
	p.tells("cmd/main.go")
}

// What nothing can have changed is not read again.
func TestFilesAreReadOnlyWhenTheirSizeOrTimeSaysSo(t *testing.T) {
	p := place{T: t, dir: t.TempDir()}
	p.write("old.go", "package a")
	p.write("new.go", "package a")
	for name, age := range map[string]time.Duration{"old.go": time.Hour, "new.go": -time.Hour} {
		at := time.Now().Add(-age) // new however late the first look comes
		if err := os.Chtimes(p.path(name), at, at); err != nil {
			t.Fatal(err)
		}
	}
	first := take(p.dir, snapshot{})
	second := take(p.dir, first)
	if !second.files["old.go"].read.Equal(first.files["old.go"].read) {
		t.Error("the old file was read again")
	}
	if second.files["new.go"].read.Equal(first.files["new.go"].read) {
		t.Error("the file that was just written was not read again")
	}
}
