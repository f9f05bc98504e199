//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// makefile is a copy of the Makefile in an empty folder. There Go is a script that "builds" programs which only write down
// their arguments.
type makefile struct{ dir, path string }

func newMakefile(t *testing.T) makefile {
	t.Helper()
	dir, bin := t.TempDir(), t.TempDir()
	coursetest.Write(t, dir, "Makefile", coursetest.Read(t, filepath.Join("..", "..", ".."), "Makefile"))
	const program = "#!/bin/sh\nprintf '%s\\0' \"$@\" >arguments\n"
	coursetest.Write(t, bin, "program", program)
	coursetest.Write(t, bin, "go", `#!/bin/sh
if [ "$1" = build ]; then mkdir -p bin && cp `+bin+`/program "$3"; else exec `+bin+`/program "$@"; fi
`)
	for _, name := range []string{"go", "program"} {
		if err := os.Chmod(filepath.Join(bin, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return makefile{dir, bin + ":" + os.Getenv("PATH")}
}

// run makes a target, and returns the arguments that the program got. env are settings of the environment, args those of
// the command line.
func (m makefile) run(t *testing.T, target string, env []string, args ...string) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "make", append([]string{"--no-print-directory", target}, args...)...)
	cmd.Dir, cmd.Env = m.dir, append([]string{"PATH=" + m.path, "HOME=" + m.dir}, env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("make %s %q: %v\n%s", target, slices.Concat(env, args), err, out)
	}
	data, err := os.ReadFile(filepath.Join(m.dir, "arguments"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"arguments", "ran"} {
		if err := os.Remove(filepath.Join(m.dir, name)); name == "ran" && err == nil {
			t.Errorf("make %s %q ran a command", target, slices.Concat(env, args))
		}
	}
	return strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00")
}

// targets are command lines of make, and the arguments that the program gets.
var targets = map[string]string{
	"lab-4 SEED=5 KEEP=1": "check 4 --keep --seed 5", "lab-4 STEP=5": "check 4", "lab-4 FORMAT=gcc": "check 4 --format gcc",
	"labs KEEP=1 WORKSPACE=~/x YES=1": "--yes --workspace ~/x check all --keep", "labs KEEP=0 YES=0 SEED=": "check all", "labs FORMAT=junit": "check all --format junit",
	"lesson": "lesson", "lesson-4": "lesson 4", "watch": "watch", "watch-4": "watch 4", "hint-4": "hint 4", "trace-4 CHECK=x": "trace 4 --check x",
	"diff-4": "diff 4", "solve-4": "solve 4", "reset-4": "reset 4", "undo": "undo",
	"lab SEED=5": "check --seed 5", "hint": "hint", "trace CHECK=x": "trace --check x", "diff": "diff",
	"cka": "cka", "cka-4 SEED=5": "cka 4 --seed 5", "hint-cka-4": "hint cka-4", "reset-cka-4": "reset cka-4",
	"solution-4 FORCE=1": "solution 4 --yes",
	"undo SAVE=--list":   "undo -- --list", "progress": "progress", "envtest": "envtest", "image": "image", "demo": "demo", "up": "up", "shell": "shell",
	"registry PORT=0 REFUSE=1": "registry --port 0 --refuse", "status CLUSTER= WORKSPACE=": "--cluster  --workspace  status",
	"status SETTINGS= WORKSPACE=$(x)": "--workspace $(x) status", "down ALL=1": "down --all", "board ADDRESS=a PORT=7": "serve --address a --port 7",
	"classroom N=2 ADDRESS=a": "up --learners 2 --address a", "classroom-modules": "modules", "judge-image": "judge-image",
	"grade DIR=x LABS=1,7 RUNTIME=runc": "grade --labs 1,7 --runtime runc -- x", "doctor NODE_IMAGE=i": "--node-image i doctor",
	"join ROOM=r KEY=k NAME=n": "join -- r k n", "setup": "setup", "node-image": "node-image", "test": "test",
	"mutants ALL=1 LAB=4 ONLY=solution": "mutants --all --lab 4 --only solution",
	"bench":                             "test ./labs/internal/proof/benchmark -run none -bench . -benchtime 1x -count 5 -timeout 3h",
	"bench ONLY=Cluster N=2":            "test ./labs/internal/proof/benchmark -run none -bench Cluster -benchtime 1x -count 2 -timeout 3h",
	"generate":                          "generate",
}

func TestSettingsBecomeFlags(t *testing.T) {
	m := newMakefile(t)
	for line, want := range targets {
		target, settings, _ := strings.Cut(line, " ")
		args := strings.Fields(settings)
		for where, got := range map[string][]string{"environment": m.run(t, target, args), "command line": m.run(t, target, nil, args...)} {
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("make %s, %s:\n%s", line, where, diff)
			}
		}
	}
	// Every target that calls a command of ours is tried; these also call those of others.
	tried := []string{"lint", "verify", "proof", "vulncheck", "help"}
	for line := range targets {
		target, _, _ := strings.Cut(line, " ")
		tried = append(tried, strings.ReplaceAll(target, "-4", "-%"))
	}
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+%?):.*## `).FindAllStringSubmatch(coursetest.Read(t, m.dir, "Makefile"), -1) {
		if !slices.Contains(tried, target[1]) {
			t.Errorf("no test makes %s", target[1])
		}
	}
}

func TestSettingIsText(t *testing.T) {
	m := newMakefile(t)
	for _, value := range []string{
		`'; touch ran; '"; touch ran; "$(touch ran)` + "`touch ran`",
		`$(shell touch ran)${shell touch ran}$$(touch ran)$$(shell touch ran)$(error no)`,
		"한글 \"a  b\" 'c' # $x \\\n-d ", // make leaves out spaces before a value of the command line
	} {
		given := []string{"WORKSPACE=" + value, "SAVE=" + value}
		want := []string{"--workspace", value, "undo", "--", value}
		for where, got := range map[string][]string{"environment": m.run(t, "undo", given), "command line": m.run(t, "undo", nil, given...)} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %q:\n%s", where, value, diff)
			}
		}
	}
	if got := m.run(t, "lab-$(shell touch ran)`touch ran`", nil); got[1] != "$(shell touch ran)`touch ran`" {
		t.Errorf("the step is %q", got)
	}
}

// What make does not know as a setting, it would expand.
func TestMakefileListsItsSettings(t *testing.T) {
	text := coursetest.Read(t, newMakefile(t).dir, "Makefile")
	list := regexp.MustCompile(`(?m)^override SETTINGS := ((?:.*\\\n)*.*)$`).FindStringSubmatch(text)
	if list == nil {
		t.Fatal("the Makefile has no SETTINGS")
	}
	known := append(strings.Fields(strings.ReplaceAll(list[1], "\\\n", " ")), "HOME", "SETTINGS", "FLAGS", "STEP", "MAKEFILE_LIST")
	for _, used := range regexp.MustCompile(`(?:\$[({]|\$\$\{?|flag,--[\w-]*,)([A-Z][A-Z0-9_]*)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(known, used[1]) {
			t.Errorf("the Makefile uses %s, which is not one of its SETTINGS", used[1])
		}
	}
}

// Go's own words for it are about a module cache.
func TestMakeNamesAMissingHome(t *testing.T) {
	m := newMakefile(t)
	cmd := exec.CommandContext(t.Context(), "make", "lab-1")
	cmd.Dir, cmd.Env = m.dir, []string{"PATH=" + m.path}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "export HOME=") {
		t.Errorf("%v: %s", err, out)
	}
}
