package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

const image = "example/node:v1"

// machine is one with which nothing is wrong, until a test changes it. Its docker and go are scripts.
type machine struct {
	t   *testing.T
	bin string
	*run
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	m := &machine{t: t, bin: t.TempDir(), run: newRun(Options{
		Engine: "docker", Dir: "/checkout", GoVersion: "1.26.0",
		NodeImage: func(context.Context, string) (string, bool, error) { return image, false, nil },
		Commands:  Commands{Setup: "make setup", NodeImage: "make node-image", Down: "make down", Instead: "CLUSTER=embedded"},
	})}
	t.Setenv("PATH", m.bin)
	m.docker("")
	m.program("go", `case $2 in GOCACHE) printf '/cache\n/modules\n' ;; *) echo go1.26.8 ;; esac`)
	m.inotify("8192")
	m.memory("16777216")
	m.diskOf("", 0)
	return m
}

// docker answers, and does this when it is to run a container.
func (m *machine) docker(run string) {
	m.program("docker", `case "$1 $3" in run*) `+run+` : ;; *RootDir*) echo /engine ;; *) echo 28.0.1 ;; esac`)
}

func (m *machine) program(name, script string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.bin, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) file(name, content string) {
	files, ok := m.files.(fstest.MapFS)
	if !ok {
		files = fstest.MapFS{}
		m.files = files
	}
	files[name] = &fstest.MapFile{Data: []byte(content)}
}

func (m *machine) inotify(n string) { m.file("proc/sys/fs/inotify/max_user_instances", n+"\n") }

func (m *machine) memory(kilo string) {
	m.file("proc/meminfo", "MemTotal: 1 kB\nMemAvailable:   "+kilo+" kB\n")
}

// diskOf says what is free in a folder; elsewhere it is plenty.
func (m *machine) diskOf(dir string, free uint64) {
	m.free = func(path string) (uint64, error) {
		if path == dir {
			return free, nil
		}
		return 100 * giga, nil
	}
}

func (m *machine) nodeImage(ref string, stale bool, err error) {
	m.NodeImage = func(context.Context, string) (string, bool, error) { return ref, stale, err }
}

// examine asks all questions, and returns the answers by name.
func (m *machine) examine() map[string]Finding {
	m.t.Helper()
	m.ask(m.t.Context())
	found := map[string]Finding{}
	for _, f := range m.findings {
		if strings.Contains(f.String(), "\n") {
			m.t.Errorf("%q is more than one line", f)
		}
		found[f.Name] = f
	}
	return found
}

func TestRunOnHealthyMachine(t *testing.T) {
	m := newMachine(t)
	found := m.examine()
	names := []string{
		"container engine", "node image", "privileged", "inotify",
		"disk", "temporary folder", "build cache", "module cache", "engine's disk", "memory", "go",
	}
	for _, name := range names {
		if f, ok := found[name]; !ok || f.Severity != Info || f.Fix != "" {
			t.Errorf("%s: %+v, want that all is well", name, f)
		}
	}
	if len(m.findings) != len(names) {
		t.Errorf("%d findings, want %d: %v", len(m.findings), len(names), m.findings)
	}
}

func TestRunNamesFix(t *testing.T) {
	for problem, test := range map[string]struct {
		spoil       func(*machine)
		name        string
		severity    Severity
		detail, fix string
	}{
		"no engine":             {func(m *machine) { m.Engine = "nerdctl" }, "container engine", Error, "none is installed (nerdctl)", "make setup"},
		"client without daemon": {func(m *machine) { m.program("docker", "echo Cannot connect >&2; exit 1") }, "container engine", Error, "Cannot connect", "make setup"},
		"daemon of others":      {func(m *machine) { m.program("docker", "echo permission denied >&2; exit 1") }, "container engine", Error, "may not use it", "usermod -aG docker"},
		"no node image":         {func(m *machine) { m.nodeImage("", false, nil) }, "node image", Warning, "none", "make node-image"},
		"not a node image":      {func(m *machine) { m.nodeImage("", false, errors.New("alpine\nis none")) }, "node image", Error, "alpine", "make node-image"},
		"stale node image":      {func(m *machine) { m.nodeImage(image, true, nil) }, "node image", Warning, image, "make node-image"},
		"no privileged containers": {
			func(m *machine) { m.docker("echo unable to apply caps >&2; exit 1;") },
			"privileged", Error, "unable to apply caps", "CLUSTER=embedded",
		},
		"few inotify instances": {func(m *machine) { m.inotify("128") }, "inotify", Warning, "128, enough for 3 clusters", "make setup"},
		"no inotify instances left": {
			func(m *machine) { m.docker("echo tail: inotify cannot be used;") },
			"inotify", Error, "all 8192 instances are in use", "max_user_instances=16384",
		},
		"full disk":             {func(m *machine) { m.diskOf("/checkout", 100*mega) }, "disk", Error, "0.1 GB free", "make down"},
		"full temporary folder": {func(m *machine) { m.diskOf(os.TempDir(), 100*mega) }, "temporary folder", Error, "0.1 GB free", "TMPDIR"},
		"full build cache":      {func(m *machine) { m.diskOf("/cache", 100*mega) }, "build cache", Error, "0.1 GB free", "go clean -cache"},
		"full module cache":     {func(m *machine) { m.diskOf("/modules", 1*giga) }, "module cache", Warning, "1.0 GB free", "GOMODCACHE"},
		"full engine's disk":    {func(m *machine) { m.diskOf("/engine", 1*giga) }, "engine's disk", Error, "1.0 GB free", "docker image ls"},
		"little memory":         {func(m *machine) { m.memory("524288") }, "memory", Error, "0.5 GB free", "make down"},
		"no Go":                 {func(m *machine) { m.program("go", "exit 1") }, "go", Error, "not installed", "go.dev/dl"},
		// In the checkout it downloads what go.mod asks for.
		"old Go": {func(m *machine) { m.program("go", `[ "$2 $3" != "-C /" ] || echo go1.25.9`) }, "go", Error, "go1.25.9 is older than 1.26.0", "go.dev/dl"},
	} {
		t.Run(problem, func(t *testing.T) {
			m := newMachine(t)
			test.spoil(m)
			f, ok := m.examine()[test.name]
			if !ok || f.Severity != test.severity || !strings.Contains(f.Detail, test.detail) || !strings.Contains(f.Fix, test.fix) {
				t.Errorf("%s: %+v, want severity %d, %q and %q", test.name, f, test.severity, test.detail, test.fix)
			}
		})
	}
}

// Without an engine, the error is what clusters run on instead, or that there is nothing.
func TestRunWithoutEngine(t *testing.T) {
	for name, test := range map[string]struct {
		noEngine bool
		instead  Severity
		wrong    bool
	}{
		"it works":                {false, Info, false},
		"it does not work":        {false, Error, true},
		"an engine is not wanted": {true, Info, false},
	} {
		m := newMachine(t)
		m.program("docker", "exit 1")
		m.NoEngine, m.Instead = test.noEngine, func(context.Context) Finding { return Finding{Name: "instead", Severity: test.instead} }
		found := m.examine()
		if _, asked := found["container engine"]; asked == test.noEngine {
			t.Errorf("%s: asked for an engine: %v", name, asked)
		}
		if err := Problem(m.findings); (err != nil) != test.wrong {
			t.Errorf("%s: Problem() = %v, want one: %v", name, err, test.wrong)
		}
	}
	m := newMachine(t)
	m.Instead = func(context.Context) Finding { return Finding{Name: "instead", Severity: Error} }
	if _, asked := m.examine()["instead"]; asked {
		t.Error("an engine answers, and what is there instead was looked at")
	}
}

func TestRunWithoutCommands(t *testing.T) {
	m := newMachine(t)
	m.Commands = newRun(Options{}).Commands
	m.program("docker", "exit 1")
	m.inotify("128")
	m.diskOf("/checkout", 0)
	for name, fix := range map[string]string{"container engine": "start Docker", "inotify": "sysctl -w", "disk": "delete clusters"} {
		if f := m.examine()[name]; !strings.Contains(f.Fix, fix) || strings.Contains(f.Fix, "make ") {
			t.Errorf("%s: fixed by %q, want %q", name, f.Fix, fix)
		}
	}
}

func TestDisksMissingTemporaryFolder(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "missing"))
	found := Disks(t.Context(), Options{})
	i := slices.IndexFunc(found, func(f Finding) bool { return f.Severity == Error })
	if i < 0 || !strings.Contains(found[i].Detail, os.Getenv("TMPDIR")) || !strings.Contains(found[i].Fix, "TMPDIR") {
		t.Errorf("Disks() = %+v, want that %s is missing", found, os.Getenv("TMPDIR"))
	}
}
