package verdict

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	usesLib   = "package main\n\nimport \"example.test/lib/greet\"\n\nfunc main() { greet.Hello() }\n"
	usesOther = "package main\n\nimport \"example.test/lib/greet\"\nimport _ \"example.test/other\"\n\nfunc main() { greet.Hello() }\n"
	hello     = "package main\n\nfunc main() {}\n"
)

// lib is a module that exists nowhere but in the tests' own proxy.
var lib = module.Version{Path: "example.test/lib", Version: "v1.0.0"}

// newCompilation is one of a module with the given main file, which requires lib, on a machine with an
// empty module cache.
func newCompilation(t *testing.T, p *proxy, main string) compilation {
	t.Helper()
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "workspace"), map[string]string{
		"go.mod":      "module example.test/mine\n\ngo 1.26\n\nrequire " + lib.Path + " " + lib.Version + "\n",
		"go.sum":      p.sums,
		"cmd/main.go": main,
	})
	base, err := process.BuildEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return compilation{
		workspace: filepath.Join(dir, "workspace"), out: filepath.Join(dir, "manager"), limit: time.Hour, known: knownModule(t),
		mod: "readonly",
		env: append(base, "GOPROXY="+p.URL, "GOSUMDB=off", "GOMODCACHE="+filepath.Join(dir, "modules"), "GOFLAGS=-modcacherw"),
	}
}

func writeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		coursetest.Write(t, dir, name, text)
	}
}

// knownModule is what [ingredient] gives in a program that is no test.
func knownModule(t *testing.T) module.Version {
	t.Helper()
	data, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Require {
		if r.Mod.Path == controlModule {
			return r.Mod
		}
	}
	t.Fatalf("go.mod does not require %s", controlModule)
	return module.Version{}
}

// proxy serves lib and the modules of this machine's cache.
type proxy struct {
	*httptest.Server
	sums string // of lib, for go.sum
	// out is how many more requests fail; negative is all of them. forgets says that it does not know lib.
	out     atomic.Int64
	forgets atomic.Bool
}

func newProxy(t *testing.T) *proxy {
	t.Helper()
	p, dir := &proxy{}, t.TempDir()
	source, files := filepath.Join(dir, "source"), filepath.Join(dir, lib.Path, "@v")
	mod := "module " + lib.Path + "\n\ngo 1.26\n"
	writeFiles(t, source, map[string]string{"go.mod": mod, "greet/greet.go": "package greet\n\nfunc Hello() {}\n"})
	writeFiles(t, files, map[string]string{"v1.0.0.mod": mod, "v1.0.0.info": `{"Version":"v1.0.0"}`})
	archive, err := os.Create(filepath.Join(files, "v1.0.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zip.CreateFromDir(archive, lib, source), archive.Close()); err != nil {
		t.Fatal(err)
	}
	p.sums = libSums(t, archive.Name(), filepath.Join(source, "go.mod"))
	env, err := process.BuildEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cache := filepath.Join(compilation{env: env}.setting("GOMODCACHE"), "cache", "download")
	p.Server = httptest.NewServer(p.failing(http.FileServer(http.Dir(dir)), http.FileServer(http.Dir(cache))))
	t.Cleanup(p.Close)
	return p
}

func libSums(t *testing.T, archive, mod string) string {
	t.Helper()
	all, err := dirhash.HashZip(archive, dirhash.DefaultHash)
	if err != nil {
		t.Fatal(err)
	}
	one, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(mod) })
	if err != nil {
		t.Fatal(err)
	}
	return lib.Path + " " + lib.Version + " " + all + "\n" + lib.Path + " " + lib.Version + "/go.mod " + one + "\n"
}

func (p *proxy) failing(lib, others http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		isLib := strings.HasPrefix(r.URL.Path, "/example.test/")
		switch left := p.out.Load(); {
		case left != 0:
			p.out.Store(left - 1)
			http.Error(w, "the line is down", http.StatusServiceUnavailable)
		case isLib && p.forgets.Load():
			http.NotFound(w, r)
		case isLib:
			lib.ServeHTTP(w, r)
		default:
			others.ServeHTTP(w, r)
		}
	})
}

func TestOnlyTheLearnersPartOfAFailedBuildIsTheirs(t *testing.T) {
	// Nobody listens on port 1. The port of a server that was closed may be that of the next test's.
	noNetwork := func(_ *proxy, c *compilation) { c.env = append(c.env, "GOPROXY=http://127.0.0.1:1") }
	down := func(p *proxy, _ *compilation) { p.out.Store(-1) }
	downLater := func(p *proxy, c *compilation) {
		if build, err := c.judge(context.Background()); build == nil || err != nil {
			panic("nothing was downloaded beforehand")
		}
		p.out.Store(-1)
	}
	for name, tc := range map[string]struct {
		main  string
		spoil func(*proxy, *compilation)
		says  string // in the compiler's output
		fix   string // of the machine's problem, when it is the machine's
	}{
		"a module is missing, and there is no network":    {usesLib, noNetwork, "example.test/lib", "mod download"},
		"a module is missing, and the proxy is down":      {usesLib, down, "example.test/lib", "mod download"},
		"a module is missing, and downloads are off":      {usesLib, func(_ *proxy, c *compilation) { c.env = append(c.env, "GOPROXY=off") }, "example.test/lib", "mod download"},
		"a module exists nowhere":                         {usesLib, func(p *proxy, _ *compilation) { p.forgets.Store(true) }, "example.test/lib", ""},
		"the proxy was down for a moment":                 {usesLib, func(p *proxy, _ *compilation) { p.out.Store(1) }, "", ""},
		"no network, and what is missing is not imported": {"package main\n\nfunc main() { undefined() }\n", down, "cmd/main.go:3", ""},
		"no network, and a file that cannot be parsed":    {"package main\n\nfunc main( {}\n", down, "cmd/main.go:3", ""},
		"no network, and an import that go.mod lacks":     {usesOther, downLater, "example.test/other", ""},
		"no network, and nothing is needed":               {hello, down, "", ""},
	} {
		for _, unlinked := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, unlinked %t", name, unlinked), func(t *testing.T) {
				t.Parallel()
				p := newProxy(t)
				c := newCompilation(t, p, tc.main)
				c.unlinked = unlinked
				tc.spoil(p, &c)
				build, err := c.judge(t.Context())
				requireBlame(t, build, err, tc.says, tc.fix)
			})
		}
	}
}

func TestALongTypeIsShortenedInAComplaint(t *testing.T) {
	c := newCompilation(t, newProxy(t), "package main\n\nvar f func("+strings.Repeat("int, ", 10_000)+"int)\n\nvar x int = f\n\nfunc main() {}\n")
	build, err := c.judge(t.Context())
	if err != nil || build == nil {
		t.Fatalf("%+v, %v", build, err)
	}
	if !strings.Contains(build.Output, "cmd/main.go:5:13: cannot use f") || !strings.HasSuffix(build.Output, "in variable declaration") || len(build.Output) > 1000 {
		t.Errorf("it says, in %d bytes: %.1000s", len(build.Output), build.Output)
	}
}

// /tmp is everybody's, and Go takes a go.mod that lies there for one of its own.
func TestWhatLiesInTheFolderForTemporaryFilesDecidesNothing(t *testing.T) {
	p := newProxy(t)
	c := newCompilation(t, p, usesLib)
	p.forgets.Store(true)
	tmp := t.TempDir()
	writeFiles(t, tmp, map[string]string{"go.mod": "nonsense"})
	t.Setenv("TMPDIR", tmp)
	build, err := c.judge(t.Context())
	requireBlame(t, build, err, "example.test/lib", "")
}

// Labs that run no manager answer without the linker, and nobody is to read the difference.
func TestWhatIsNotLinkedIsCompiledAllTheSame(t *testing.T) {
	p := newProxy(t)
	for name, main := range map[string]string{
		"works":                 hello,
		"wrong type":            "package main\n\nfunc main() {}\n\nfunc size() int { return \"three\" }\n",
		"undefined, many":       "package main\n\nfunc main() {" + strings.Repeat("\n\tnone()", 30) + "\n}\n",
		"syntax":                "package main\n\nfunc main( {}\n",
		"nobody has it":         "package main\n\nimport _ \"example.test/nobody\"\n\nfunc main() {}\n",
		"not used":              "package main\n\nimport \"fmt\"\n\nfunc main() {}\n",
		"an error further down": "package main\n\nimport _ \"example.test/mine/cmd/inner\"\n\nfunc main() {}\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCompilation(t, p, main)
			writeFiles(t, c.workspace, map[string]string{"cmd/inner/inner.go": "package inner\n\nvar size int = \"three\"\n"})
			linked, err := c.judge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			c.unlinked, c.out = true, c.out+"-unlinked"
			unlinked, err := c.judge(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(linked, unlinked); diff != "" {
				t.Error(diff)
			}
			if _, err := os.Stat(c.out); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("stat %s: %v, want no program", c.out, err)
			}
		})
	}
}

func TestOnlyLabsThatRunTheManagerHaveItLinked(t *testing.T) {
	all := coursetest.Load(t, "../../..")
	workspace := t.TempDir()
	writeFiles(t, workspace, map[string]string{"go.mod": "module example.test/mine\n\ngo 1.26\n", "cmd/main.go": hello})
	for _, lab := range all.Labs {
		r := &run{Judge: &Judge{Course: all, Workspace: workspace}, manager: filepath.Join(t.TempDir(), "manager"), cluster: &clusters.Cluster{}}
		r.wanted = r.suiteLabs([]int{lab.Number})
		if build, err := r.compile(t.Context()); build != nil || err != nil {
			t.Fatalf("the build gives %+v, %v", build, err)
		}
		_, err := os.Stat(r.manager)
		if runs := lab.Number >= 4; runs != (err == nil) || runs != (r.config([]int{lab.Number}).Manager != "") {
			t.Errorf("lab %d: stat of the manager: %v; the suite is told of %q; want one: %t", lab.Number, err, r.config([]int{lab.Number}).Manager, runs)
		}
	}
}

// requireBlame wants a compilation that worked, a complaint of the compiler, or a problem of the machine.
func requireBlame(t *testing.T, build *Build, err error, says, fix string) {
	t.Helper()
	problem, _ := errors.AsType[*clusters.Problem](err)
	switch {
	case says == "" && (build != nil || err != nil):
		t.Errorf("the build gives %+v, %v, want that it works", build, err)
	case says == "":
	case fix == "" && (build == nil || err != nil):
		t.Errorf("the build gives %+v, %v, want the compiler's complaint", build, err)
	case fix == "" && !strings.Contains(build.Output, says):
		t.Errorf("the compiler's complaint does not say %q:\n%s", says, build.Output)
	case fix == "":
	case problem == nil || build != nil:
		t.Errorf("the build gives %+v, %v, want a problem of the machine", build, err)
	case !strings.Contains(problem.Finding(), says) || !strings.Contains(problem.Fix, fix):
		t.Errorf("the problem does not say %q and %q: %v", says, fix, problem)
	}
}

func TestLookingForModulesLeavesTheWorkspaceAlone(t *testing.T) {
	p := newProxy(t)
	c := newCompilation(t, p, usesLib)
	before, err := course.ReadTree(c.workspace)
	if err != nil {
		t.Fatal(err)
	}
	p.out.Store(1)
	if build, err := c.judge(t.Context()); build != nil || err != nil {
		t.Fatalf("the build gives %+v, %v", build, err)
	}
	if after, err := course.ReadTree(c.workspace); err != nil || before.Diff(after) != nil {
		t.Errorf("changed: %q, %v", before.Diff(after), err)
	}
}

// The Go command quotes what it does not understand, and a verdict goes to the room.
func TestALinkAsGoModQuotesNoFile(t *testing.T) {
	c := newCompilation(t, newProxy(t), hello)
	secret, mod := filepath.Join(t.TempDir(), "pgpass"), filepath.Join(c.workspace, "go.mod")
	writeFiles(t, filepath.Dir(secret), map[string]string{"pgpass": "localhost:5432:db:me:hunter2\n"})
	if err := errors.Join(os.Remove(mod), os.Symlink(secret, mod)); err != nil {
		t.Fatal(err)
	}
	build, err := c.trusted(t.Context())
	if err != nil || build == nil || !strings.Contains(build.Output, "go.mod is a link") || strings.Contains(build.Output, "hunter2") {
		t.Errorf("the build gives %+v, %v", build, err)
	}
}

func TestABuildThatTakesTooLongIsTheMachines(t *testing.T) {
	c := newCompilation(t, newProxy(t), hello)
	c.limit = time.Millisecond
	build, err := c.judge(t.Context())
	requireBlame(t, build, err, "not compiled within 1ms", "make doctor")
}

// The code does not compile either, and that may be for want of room.
func TestABuildWithoutRoomIsTheMachines(t *testing.T) {
	c := newCompilation(t, newProxy(t), "package main\n\nfunc main() { x }\n")
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	build, err := c.judge(t.Context())
	requireBlame(t, build, err, "temporary folder", "TMPDIR")
}

// The kernel kills a compiler when memory runs out.
func TestAKilledCompilerIsTheMachines(t *testing.T) {
	c := newCompilation(t, newProxy(t), hello)
	compiler := filepath.Join(t.TempDir(), "compile")
	writeFiles(t, filepath.Dir(compiler), map[string]string{"compile": "#!/bin/sh\ncase $* in *-V=full*) exec \"$@\" ;; esac\nkill -KILL $$\n"})
	if err := os.Chmod(compiler, 0o755); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "GOFLAGS=-modcacherw -toolexec="+compiler, "GOCACHE="+t.TempDir())
	build, err := c.judge(t.Context())
	requireBlame(t, build, err, "killed the compiler", "close other programs")
}

func TestAnInterruptedBuildBlamesNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	build, err := newCompilation(t, newProxy(t), hello).judge(ctx)
	if build != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the build gives %+v, %v, want the interrupt alone", build, err)
	}
}

// A newer save in `make watch` ends a build that is under way, many times a day.
func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	c := newCompilation(t, newProxy(t), hello)
	c.env = append(c.env, "GOCACHE="+t.TempDir()) // without a cache it compiles for seconds
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.run(ctx)
		ended <- err
	}()
	for len(begun(t, filepath.Dir(c.out))) == 0 {
		select {
		case err := <-ended:
			t.Fatalf("the build ended before it was interrupted: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("run() = %v, want that it was interrupted", err)
	}
	if left := begun(t, os.TempDir()); len(left) > 0 {
		t.Errorf("the build leaves %v", left)
	}
}

// begun is what compilers of builds with this folder for temporary files have begun with, or left.
func begun(t *testing.T, temp string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(temp, "go-build*", "b*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}
