package modules_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/goproxy"
	"github.com/example/operator-lab/labs/internal/goproxy/goproxytest"
	"github.com/example/operator-lab/labs/internal/modules"
)

var (
	used      = module.Version{Path: "example.com/used", Version: "v1.2.0"}
	onlyTests = module.Version{Path: "example.com/only/tests", Version: "v0.1.0"}
	onWindows = module.Version{Path: "example.com/windows", Version: "v1.0.0"}
	tidyOnly  = module.Version{Path: "example.com/tidy/only", Version: "v1.0.0"}
	tool      = module.Version{Path: "example.com/Tool", Version: "v2.0.0+incompatible"}
	toolchain = module.Version{Path: "golang.org/toolchain", Version: "v0.0.1-go1.99.0.linux-amd64"}
)

// publish puts what a made-up course needs onto a made-up internet.
func publish(t *testing.T) goproxytest.Cache {
	t.Helper()
	c := goproxytest.New(t)
	c.Add(t, used, map[string]string{
		"go.mod":  "module " + used.Path + "\n\ngo 1.26\n\nrequire " + tidyOnly.Path + " " + tidyOnly.Version + "\n",
		"used.go": "package used\n", "used_test.go": "package used\n\nimport _ \"" + tidyOnly.Path + "\"\n",
	})
	c.Add(t, tidyOnly, map[string]string{"only.go": "package only\n"})
	c.Add(t, onlyTests, map[string]string{"tests.go": "package tests\n"})
	c.Add(t, onWindows, map[string]string{"windows.go": "package windows\n"})
	c.Add(t, tool, map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	c.Add(t, toolchain, map[string]string{"bin/go": "#!/bin/sh\n"})
	return c
}

// need is a module that uses all of that, each in its own way.
func need(t *testing.T, c goproxytest.Cache) modules.Need {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) { goproxytest.Write(t, filepath.Join(dir, name), text) }
	mod, sum := "module example.com/mine\n\ngo 1.26.0\n\ntool "+tool.Path+"\n", ""
	for _, m := range []module.Version{used, onlyTests, onWindows, tool} {
		mod += "\nrequire " + m.Path + " " + m.Version + "\n"
		sum += c.Sum(t, m)
	}
	write("go.mod", mod)
	write("go.sum", sum+c.Sum(t, tidyOnly))
	write("main.go", "package main\n\nimport _ \"example.com/used\"\n\nfunc main() {}\n")
	write("main_windows.go", "package main\n\nimport _ \"example.com/windows\"\n")
	write("main_test.go", "package main\n\nimport _ \"example.com/only/tests\"\n")
	return modules.Need{
		Name: "a module", Dir: dir, Packages: []string{"./..."}, Programs: []string{"tool"}, Tidied: true,
		Systems: []string{"linux", "windows"},
	}
}

// offer serves a cache, with a database of checksums, until the test ends or stop is called.
func offer(t *testing.T, downloads string) (env []string, stop func()) {
	t.Helper()
	sums, err := goproxy.OpenSums(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := goproxy.New(downloads, goproxy.Options{Sums: sums})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(p)
	t.Cleanup(func() {
		srv.Close()
		if err := errors.Join(p.Close(), sums.Close()); err != nil {
			t.Error(err)
		}
	})
	return goproxy.Env(srv.URL, sums.Key()), srv.Close
}

// machine makes this process one with an empty module cache that reaches a made-up internet, until stop is called.
func machine(t *testing.T, internet goproxytest.Cache) (cache modules.Cache, stop func()) {
	t.Helper()
	env, stop := offer(t, string(internet))
	home := t.TempDir()
	goproxytest.Removable(t, home)
	for _, entry := range append(env,
		"GOENV=off", "GOTOOLCHAIN=local", "GOPATH="+home, "GOMODCACHE="+filepath.Join(home, "mod")) {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	cache, err := modules.FindCache(t.Context())
	if err != nil || cache.Downloads != filepath.Join(home, "mod", "cache", "download") {
		t.Fatal(cache, err)
	}
	return cache, stop
}

func quiet(string) {}

func TestARoomThatWasFilledNeedsNoInternet(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	cache, offline := machine(t, internet)
	var told []string
	stock, err := modules.Fill(t.Context(), []modules.Need{n}, func(line string) { told = append(told, line) })
	if err != nil {
		t.Fatal(err)
	}
	if absent, err := cache.Absent([]modules.Need{n}); err != nil || len(absent) > 0 {
		t.Errorf("absent after that: %q, %v", absent, err)
	}
	if len(stock) != 4 || stock.Bytes() == 0 || !strings.HasPrefix(told[len(told)-1], "modules of a module: 4 modules, ") {
		t.Errorf("%v, %q", stock, told)
	}
	toolchains, err := cache.FillToolchains(t.Context(), []string{"go1.99.0"}, []string{"linux/amd64"}, quiet)
	if err != nil || len(toolchains) != 1 || toolchains.Bytes() == 0 {
		t.Errorf("%v, %v", toolchains, err)
	}
	offline()
	again, err := modules.Fill(t.Context(), []modules.Need{n}, quiet)
	if err != nil || again.Bytes() != stock.Bytes() {
		t.Errorf("a second time needs the internet: %v, %v", again, err)
	}
	if _, err := cache.FillToolchains(t.Context(), []string{"go1.99.0"}, []string{"linux/amd64"}, quiet); err != nil {
		t.Errorf("a second time needs the internet: %v", err)
	}

	env, _ := offer(t, cache.Downloads)
	room, disk := modules.Room{Env: env}, t.TempDir()
	if err := room.Check(t.Context(), disk, []modules.Need{n}, "go1.99.0", "linux/amd64", quiet); err != nil {
		t.Error(err)
	}
	for _, m := range []module.Version{used, onlyTests, onWindows, tool, tidyOnly} {
		zip := goproxytest.Cache(cache.Downloads).Path(t, m, ".zip")
		if err := os.Rename(zip, zip+".away"); err != nil {
			t.Fatal(err)
		}
		err := room.Check(t.Context(), disk, []modules.Need{n}, "", "", quiet)
		if err == nil || !strings.Contains(err.Error(), m.Path) {
			t.Errorf("without %s: %v", m, err)
		}
		if err := os.Rename(zip+".away", zip); err != nil {
			t.Fatal(err)
		}
	}
	if err := room.Check(t.Context(), disk, []modules.Need{n}, "", "", quiet); err != nil {
		t.Errorf("with all of them again: %v", err)
	}
	err = room.Check(t.Context(), disk, nil, "go1.99.1", "linux/amd64", quiet)
	if err == nil || !strings.Contains(err.Error(), "go1.99.1") {
		t.Errorf("without the toolchain: %v", err)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("a check leaves %v, %v", left, err)
	}
}

func TestWhatCannotBeDownloadedIsNamedAndWhatCameStays(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	if err := os.Remove(internet.Path(t, onWindows, ".zip")); err != nil {
		t.Fatal(err)
	}
	cache, _ := machine(t, internet)
	stock, err := modules.Fill(t.Context(), []modules.Need{n}, quiet)
	if err == nil || !strings.Contains(err.Error(), onWindows.Path) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if len(stock) != 3 {
		t.Errorf("%v", stock)
	}
	if absent, err := cache.Absent([]modules.Need{n}); err != nil || !slices.Equal(absent, []string{onWindows.String()}) {
		t.Errorf("absent: %q, %v", absent, err)
	}
	_, err = cache.FillToolchains(t.Context(), []string{"go1.99.0"}, []string{"linux/arm64"}, quiet)
	if err == nil || !strings.Contains(err.Error(), "go1.99.0 for linux/arm64") {
		t.Errorf("%v", err)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(cache.Downloads), "lab-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAnInterruptIsNoFailure(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	cache, _ := machine(t, internet)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := modules.Fill(ctx, []modules.Need{n}, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	_, err := cache.FillToolchains(ctx, []string{"go1.99.0"}, []string{"linux/amd64"}, quiet)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	err = modules.Room{}.Check(ctx, t.TempDir(), []modules.Need{n}, "", "", quiet)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestModulesOfAPersonsWorkArePrivate(t *testing.T) {
	t.Setenv("GOENV", "off")
	for _, tc := range []struct{ private, noProxy, want string }{
		{"", "", ""},
		{"corp.example.com", "", "corp.example.com,corp.example.com"}, // GONOPROXY follows GOPRIVATE
		{"corp.example.com", "none", "corp.example.com"},
		{"", "*.example.org", "*.example.org"},
	} {
		t.Setenv("GOPRIVATE", tc.private)
		t.Setenv("GONOPROXY", tc.noProxy)
		if c, err := modules.FindCache(t.Context()); err != nil || c.Private != tc.want {
			t.Errorf("GOPRIVATE=%s GONOPROXY=%s: %q, %v", tc.private, tc.noProxy, c.Private, err)
		}
	}
}

func TestTheToolchainIsTheNewestThatAGoModAsksFor(t *testing.T) {
	for want, mods := range map[string][]string{
		"go1.26.0":   {"go 1.26.0"},
		"go1.27.0":   {"go 1.26.3", "go 1.27"},
		"go1.26.10":  {"go 1.26.9", "go 1.26.10"},
		"go1.26.8":   {"go 1.26.0\n\ntoolchain go1.26.8"},
		"go1.27rc1":  {"go 1.27rc1", "go 1.26.0"},
		"go1.25.100": {"go 1.25.100", ""},
	} {
		var needs []modules.Need
		for _, mod := range mods {
			dir := t.TempDir()
			goproxytest.Write(t, filepath.Join(dir, "go.mod"), "module example.com/mine\n\n"+mod+"\n")
			needs = append(needs, modules.Need{Dir: dir})
		}
		if got, err := modules.Toolchain(needs); err != nil || got != want {
			t.Errorf("%q: %s, %v, want %s", mods, got, err, want)
		}
	}
	if _, err := modules.Toolchain([]modules.Need{{Name: "nothing", Dir: t.TempDir()}}); err == nil {
		t.Error("a folder without go.mod has a toolchain")
	}
	for name, ok := range map[string]bool{
		"go1.26.0": true, "go1.27rc1": true, "go1.26": false, "1.26.0": false, "": false, "go1.26.0/../x": false,
	} {
		if err := modules.CheckToolchain(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// The real course: what is there to be downloaded is what make lab-N compiles.
func TestTheCourseNeedsItsWorkspaceTheLabAndAControlPlane(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	c, err := course.Load(filepath.Join(filepath.Dir(file), "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	needs, err := modules.Needs(c, scratch, true)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range needs {
		names = append(names, n.Name)
		if _, err := os.Stat(filepath.Join(n.Dir, "go.sum")); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	if want := []string{"the workspace", "the lab", "kubernetes", "etcd", "kwok"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if without, err := modules.Needs(c, t.TempDir(), false); err != nil || len(without) != 2 {
		t.Errorf("without a control plane: %v, %v", without, err)
	}
	toolchain, err := modules.Toolchain(needs)
	if err != nil || modules.CheckToolchain(toolchain) != nil {
		t.Errorf("%s, %v", toolchain, err)
	}
}
