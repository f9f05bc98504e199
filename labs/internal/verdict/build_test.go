package verdict

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// lib is a module that this checkout requires, so it is in this machine's module cache.
	lib     = "github.com/google/go-cmp"
	usesLib = "package main\n\nimport \"" + lib + "/cmp\"\n\nfunc main() { cmp.Equal(1, 2) }\n"
	hello   = "package main\n\nfunc main() {}\n"
	// nowhere is a proxy that does not answer: nobody listens on port 1.
	nowhere = "GOPROXY=http://127.0.0.1:1"
)

// newCompilation compiles a module with the given main file, which requires lib. The module cache is empty, and the proxy is
// this machine's cache.
func newCompilation(t *testing.T, main string) *compilation {
	t.Helper()
	dir := t.TempDir()
	mod, sums := coursetest.Read(t, "../../..", "go.mod"), ""
	_, version, _ := strings.Cut(mod, lib+" ")
	version, _, _ = strings.Cut(version, "\n")
	for line := range strings.Lines(coursetest.Read(t, "../../..", "go.sum")) {
		if strings.HasPrefix(line, lib+" "+version) {
			sums += line
		}
	}
	base, err := process.BuildEnv(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c := &compilation{workspace: filepath.Join(dir, "workspace"), out: filepath.Join(dir, "manager"), limit: time.Hour, env: base}
	c.env = append(base, "GOPROXY=file://"+c.setting("GOMODCACHE")+"/cache/download", "GOSUMDB=off",
		"GOMODCACHE="+filepath.Join(dir, "modules"), "GOFLAGS=-modcacherw")
	c.write(t, map[string]string{
		"go.mod": "module example.test/mine\n\ngo 1.26\n\nrequire " + lib + " " + version + "\n", "go.sum": sums, "cmd/main.go": main,
	})
	return c
}

// setting is a setting of the Go command; the last one counts.
func (c *compilation) setting(name string) (value string) {
	for _, entry := range c.env {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

func (c *compilation) write(t *testing.T, files map[string]string) {
	t.Helper()
	for name, text := range files {
		coursetest.Write(t, c.workspace, name, text)
	}
}

// set adds settings of the Go command.
func set(settings ...string) func(*testing.T, *compilation) {
	return func(_ *testing.T, c *compilation) { c.env = append(c.env, settings...) }
}

func files(files map[string]string) func(*testing.T, *compilation) {
	return func(t *testing.T, c *compilation) {
		t.Helper()
		c.write(t, files)
		c.env = append(c.env, nowhere)
	}
}

func TestBuildTellsLearnerAndMachineApart(t *testing.T) {
	for name, tc := range map[string]struct {
		main  string
		spoil func(*testing.T, *compilation)
		says  string // in the compiler's output, or the problem
		fix   string // of the machine's problem, when it is the machine's
	}{
		"no network, and nothing is needed":            {hello, set(nowhere), "", ""},
		"a module is missing, and there is no network": {usesLib, set(nowhere), lib, "mod download"},
		"a module is missing, and downloads are off":   {usesLib, set("GOPROXY=off"), lib, "mod download"},
		"a module exists nowhere": {usesLib, func(t *testing.T, c *compilation) {
			t.Helper()
			c.write(t, map[string]string{"go.mod": "module example.test/mine\n\ngo 1.26\n\nrequire " + lib + " v99.0.0\n"})
		}, "v99.0.0", ""},
		"the proxy was down for a moment": {usesLib, func(t *testing.T, c *compilation) {
			t.Helper()
			cache, down := http.FileServer(http.Dir(filepath.Join(strings.TrimPrefix(c.setting("GOPROXY"), "file://")))), atomic.Bool{}
			down.Store(true)
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if down.Swap(false) {
					http.Error(w, "the line is down", http.StatusServiceUnavailable)
					return
				}
				cache.ServeHTTP(w, r)
			}))
			t.Cleanup(proxy.Close)
			c.env = append(c.env, "GOPROXY="+proxy.URL)
		}, "", ""},
		"what is missing is not imported": {"package main\n\nfunc main() { undefined() }\n", set(nowhere), "cmd/main.go:3", ""},
		"a file that cannot be parsed":    {"package main\n\nfunc main( {}\n", set(nowhere), "cmd/main.go:3", ""},
		"an import that go.mod lacks":     {"package main\n\nimport _ \"example.test/other\"\n\nfunc main() {}\n", files(map[string]string{"go.mod": "module example.test/mine\n\ngo 1.26\n"}), "example.test/other", ""},
		"a vendor folder that is stale":   {usesLib, files(map[string]string{"vendor/modules.txt": "## none\n"}), "go mod vendor", ""},
		"updates to go.mod are needed":    {usesLib, files(map[string]string{"go.mod": "module example.test/mine\n\ngo 1.26\n"}), lib, ""},
		"there is no program":             {"", files(map[string]string{"main.go": "package mine\n"}), "there is no program", ""},
		"the folder is no module":         {hello, func(t *testing.T, c *compilation) { t.Helper(); c.workspace = t.TempDir() }, "no go.mod", ""},
		"it takes too long":               {hello, func(_ *testing.T, c *compilation) { c.limit = time.Millisecond }, "not compiled within 1ms", "make doctor"},
		"something killed the compiler":   {hello, killsCompilers, "killed the compiler", "close other programs"},
		"the program is at the top of it": {"", files(map[string]string{"main.go": hello}), "", ""},
		"the program is in cmd/manager":   {"", files(map[string]string{"cmd/manager/main.go": hello, "cmd/tool/main.go": hello}), "", ""},
		"the only program is in cmd/own":  {"", files(map[string]string{"cmd/own/main.go": hello}), "", ""},
		"there are several programs":      {"", files(map[string]string{"cmd/a/main.go": hello, "cmd/b/main.go": hello}), "cmd/a, cmd/b", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCompilation(t, tc.main)
			if tc.main == "" {
				if err := os.Remove(filepath.Join(c.workspace, "cmd", "main.go")); err != nil {
					t.Fatal(err)
				}
			}
			tc.spoil(t, c)
			failed, err := c.build(t.Context())
			problem, ok := errors.AsType[*clusters.Problem](err)
			switch {
			case err != nil && !ok:
				t.Error(err)
			case tc.says == "" && (failed != nil || ok):
				t.Errorf("the build gives %+v, %v, want that it works", failed, err)
			case tc.says == "":
			case tc.fix == "" && (failed == nil || !strings.Contains(failed.Output, tc.says)):
				t.Errorf("the build gives %+v, %v, want the learner's mistake %q", failed, err, tc.says)
			case tc.fix != "" && (!ok || !strings.Contains(problem.Finding(), tc.says) || !strings.Contains(problem.Fix, tc.fix)):
				t.Errorf("the build gives %+v, %v, want a problem of the machine, %q and %q", failed, err, tc.says, tc.fix)
			}
		})
	}
}

// killsCompilers does what the kernel does when memory runs out.
func killsCompilers(t *testing.T, c *compilation) {
	t.Helper()
	compiler := filepath.Join(t.TempDir(), "compile")
	if err := os.WriteFile(compiler, []byte("#!/bin/sh\ncase $* in *-V=full*) exec \"$@\" ;; esac\nkill -KILL $$\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	c.env = append(c.env, "GOFLAGS=-modcacherw -toolexec="+compiler, "GOCACHE="+t.TempDir())
}

// Labs that run no manager answer without the linker.
func TestUnlinkedBuildFindsSameErrors(t *testing.T) {
	for _, main := range []string{hello, "package main\n\nfunc main() {\n\tnone()\n}\n"} {
		c := newCompilation(t, main)
		linked, err := c.build(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.unlinked, c.out = true, c.out+"-unlinked"
		unlinked, err := c.build(t.Context())
		_, made := os.Stat(c.out)
		if diff := cmp.Diff(linked, unlinked); diff != "" || err != nil || !os.IsNotExist(made) {
			t.Errorf("%v, %v\n%s", err, made, diff)
		}
	}
}

func TestInterruptedBuildBlamesNobody(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if failed, err := newCompilation(t, hello).build(ctx); failed != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("the build gives %+v, %v, want the interrupt alone", failed, err)
	}
}

func TestControlModuleIsInGoMod(t *testing.T) {
	if want := strings.ReplaceAll(controlModule, "@", " "); !strings.Contains(coursetest.Read(t, "../../..", "go.mod"), want) {
		t.Errorf("go.mod has no %s: a classroom without internet serves the version of go.mod", want)
	}
}
