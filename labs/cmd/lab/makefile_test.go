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

// arguments are those of each target when every setting has the same value, which VALUE stands for. "lab" and "classroom"
// are what every command of theirs begins with. No switch is on.
var arguments = map[string]string{
	"lab-4": "lab check 4 --seed VALUE --judge-image VALUE", "labs": "lab check all", "watch": "lab watch --pool VALUE",
	"watch-4": "lab watch 4 --pool VALUE", "hint-4": "lab hint 4", "trace": "lab trace --check VALUE", "trace-4": "lab trace 4 --check VALUE",
	"diff-4": "lab diff 4", "solve-4": "lab solve 4", "reset-4": "lab reset 4", "undo": "lab undo -- VALUE", "progress": "lab progress",
	"demo": "lab demo", "up": "lab up", "shell": "lab shell", "registry": "lab registry --port VALUE", "status": "lab status", "down": "lab down",
	"board":             "classroom serve --address VALUE --port VALUE",
	"classroom":         "classroom up --learners VALUE --names VALUE --address VALUE --replace VALUE",
	"classroom-status":  "classroom status",
	"classroom-down":    "classroom down",
	"classroom-modules": "classroom modules",
	"judge-image":       "classroom judge-image",
	"grade":             "classroom grade --labs VALUE --runtime VALUE -- VALUE",
	"doctor":            "lab doctor",
	"join":              "lab join -- VALUE VALUE VALUE",
	"setup":             "lab setup", "node-image": "labdev node-image", "test": "labdev test", "proof": "labdev proof",
	"mutants": "labdev mutants --lab VALUE --only VALUE --repeat VALUE --seed VALUE",
	"bench":   "test ./labs/internal/proof/benchmark -run none -bench VALUE -benchtime 1x -count VALUE -timeout 3h",
	"verify":  "labdev verify", "generate": "labdev verify --fix",
}

var commands = map[string]string{
	"lab": "--cluster VALUE --node-image VALUE --workspace VALUE", "classroom": "--cluster VALUE --node-image VALUE",
	"labdev": "--cluster VALUE --node-image VALUE",
}

func TestASettingIsText(t *testing.T) {
	m := newMakefile(t)
	settings := m.settings(t)
	for _, value := range []string{
		`'; touch ran; '"; touch ran; "$(touch ran)` + "`touch ran`",
		`$(shell touch ran)${shell touch ran}$$(touch ran)$$(shell touch ran)$(error no)`,
		"한글 \"a  b\" 'c' # $x \\\n-d ", // make leaves out spaces before a value of the command line
	} {
		var given []string
		for _, name := range settings {
			given = append(given, name+"="+value)
		}
		for target, line := range arguments {
			words := strings.Fields(line)
			if common, ok := commands[words[0]]; ok {
				words = append(strings.Fields(common), words[1:]...)
			}
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "VALUE", value)
			}
			for where, got := range map[string][]string{"environment": m.run(t, target, given), "command line": m.run(t, target, nil, given...)} {
				if diff := cmp.Diff(words, got); diff != "" {
					t.Errorf("make %s, %s, %q:\n%s", target, where, value, diff)
				}
			}
		}
	}
}

// settings are those that the Makefile lists. It has to list all that it uses.
func (m makefile) settings(t *testing.T) []string {
	t.Helper()
	text := coursetest.Read(t, m.dir, "Makefile")
	list := regexp.MustCompile(`(?m)^override SETTINGS := ((?:.*\\\n)*.*)$`).FindStringSubmatch(text)
	if list == nil {
		t.Fatal("the Makefile has no SETTINGS")
	}
	settings := strings.Fields(strings.ReplaceAll(list[1], "\\\n", " "))
	own := []string{"HOME", "SETTINGS", "FLAGS", "STEP", "MAKEFILE_LIST"}
	for _, used := range regexp.MustCompile(`(?:\$[({]|\$\$\{?|flag,--[\w-]*,)([A-Z][A-Z0-9_]*)`).FindAllStringSubmatch(text, -1) {
		if !slices.Contains(settings, used[1]) && !slices.Contains(own, used[1]) {
			t.Errorf("the Makefile uses %s, which is not one of its SETTINGS", used[1])
		}
	}
	return settings
}

// Every target that calls a command of ours is tried; lint and vulncheck also call those of others.
func TestEveryTargetIsTried(t *testing.T) {
	for _, target := range regexp.MustCompile(`(?m)^([a-z-]+%?):.*## `).FindAllStringSubmatch(coursetest.Read(t, newMakefile(t).dir, "Makefile"), -1) {
		name := strings.ReplaceAll(target[1], "%", "4")
		if _, ok := arguments[name]; !ok && !slices.Contains([]string{"lint", "vulncheck", "help"}, name) {
			t.Errorf("no test makes %s", name)
		}
	}
}

// The step in the name of a target is what somebody typed, too.
func TestAStepIsText(t *testing.T) {
	m := newMakefile(t)
	for _, step := range []string{"';touch ran;'", "$(touch ran)", "`touch ran`", "$(shell touch ran)", `" a "`} {
		if got, want := m.run(t, "lab-"+step, nil), []string{"check", step}; !slices.Equal(got, want) {
			t.Errorf("lab-%s makes %q, want %q", step, got, want)
		}
	}
}

func TestSettingsBecomeFlags(t *testing.T) {
	m := newMakefile(t)
	for line, want := range map[string]string{
		"lab-1":                           "check 1",
		"lab-1 SEED=5 KEEP=1":             "check 1 --keep --seed 5",
		"lab-5 SEED=5 CLUSTER=kind":       "--cluster kind check 5 --seed 5",
		"labs KEEP=1 WORKSPACE=~/x YES=1": "--yes --workspace ~/x check all --keep",
		"labs KEEP=0 YES=0 SEED=":         "check all",
		"status CLUSTER= WORKSPACE=":      "--cluster  --workspace  status",
		"watch POOL=0":                    "watch --pool 0",
		"watch-4":                         "watch 4",
		"hint-4":                          "hint 4",
		"trace CHECK=x":                   "trace --check x",
		"trace-4":                         "trace 4",
		"diff-4 FORCE=1":                  "diff 4 --force",
		"solve-4":                         "solve 4",
		"reset-4":                         "reset 4",
		"undo":                            "undo",
		"undo LIST=1":                     "undo --list",
		"undo SAVE=x":                     "undo -- x",
		"down ALL=1":                      "down --all",
		"board PORT=7777":                 "serve --port 7777",
		"classroom N=12 ADDRESS=a":        "up --learners 12 --address a",
		"grade DIR=x LABS=1,7":            "grade --labs 1,7 -- x",
		"doctor":                          "doctor",
		"join ROOM=r KEY=k NAME=n":        "join -- r k n",
		"mutants ALL=1 LAB=4 ONLY=solution SEED=1": "mutants --all --lab 4 --only solution --seed 1",
		"bench":                           "test ./labs/internal/proof/benchmark -run none -bench . -benchtime 1x -count 5 -timeout 3h",
		"bench ONLY=Cluster N=2":          "test ./labs/internal/proof/benchmark -run none -bench Cluster -benchtime 1x -count 2 -timeout 3h",
		"undo SAVE=--list":                "undo -- --list",
		"status SETTINGS= WORKSPACE=$(x)": "--workspace $(x) status",
		"lab-4 STEP=5":                    "check 4",
		"classroom NAMES=f ADDRESS=a":     "up --names f --address a",
	} {
		target, settings, _ := strings.Cut(line, " ")
		args := strings.Fields(settings)
		for where, got := range map[string][]string{"environment": m.run(t, target, args), "command line": m.run(t, target, nil, args...)} {
			if diff := cmp.Diff(want, strings.Join(got, " ")); diff != "" {
				t.Errorf("make %s, %s:\n%s", line, where, diff)
			}
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
