//go:build linux

package roomtest

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/checkout"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// cleanupLimit is how long an interrupted command of a learner may take to delete its cluster.
const cleanupLimit = 30 * time.Second

// learner is somebody with an empty home, a handout, and the course as the room's server sends it. They type what the
// handout's page says.
type learner struct {
	home, handout, course string
	env                   []string
	// wrap changes each command before it runs, nil for none.
	wrap func(*exec.Cmd)
}

// newLearner unpacks a handout and gets the course as its page says. The learner's shell has this machine's programs and none of its
// settings, but for env.
func newLearner(t *testing.T, archive string, wrap func(*exec.Cmd), env ...string) *learner {
	t.Helper()
	home, id := t.TempDir(), strings.TrimSuffix(filepath.Base(archive), ".zip")
	l := &learner{
		home: home, handout: filepath.Join(home, id), course: filepath.Join(home, checkout.Folder), wrap: wrap,
		env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}, env...),
	}
	files, err := zip.OpenReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := os.CopyFS(home, files); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(l.handout, "START.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, commands, _ := strings.Cut(string(page), "cd ~\n")
	commands, _, _ = strings.Cut(commands, "make lab-1")
	if out, err := l.run(t, home, "set -e\n"+commands); err != nil || !strings.Contains(commands, "--pinnedpubkey") {
		t.Fatalf("get the course with\n%s: %v\n%s", commands, err, out)
	}
	return l
}

// run runs a line of a shell that has read the handout's settings.
func (l *learner) run(t *testing.T, dir, line string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", `source "$0/env.sh" && cd "$1" && eval "$2"`, l.handout, dir, line)
	cmd.Env, cmd.WaitDelay = l.env, cleanupLimit
	process.Own(cmd, syscall.SIGINT)
	if l.wrap != nil {
		l.wrap(cmd)
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// judge asks for the verdict on a lab, with settings such as CLUSTER=embedded.
func (l *learner) judge(t *testing.T, lab int, settings string) *verdict.Result {
	t.Helper()
	state := filepath.Join(l.course, ".lab")
	if err := os.RemoveAll(verdict.Path(state, lab)); err != nil {
		t.Fatal(err)
	}
	// make ends with the same exit code after every failure; the verdict is in the result.
	out, _ := l.run(t, l.course, fmt.Sprintf("make lab-%d %s", lab, settings))
	result, err := verdict.Read(state, lab)
	if err != nil {
		t.Fatalf("make lab-%d %s: no verdict: %v\n%s", lab, settings, err, out)
	}
	return result
}

// requireRed wants the lab's starter to fail in its checks.
func (l *learner) requireRed(t *testing.T, lab int, settings string) {
	t.Helper()
	if red := l.judge(t, lab, settings); red.Verdict != verdict.Fail || red.Build != nil || red.Count(verdict.Failed) == 0 {
		t.Errorf("the starter of lab %d is %s: %+v", lab, red.Verdict, red)
	}
}

// requireGreen wants the lab's solution to pass.
func (l *learner) requireGreen(t *testing.T, lab int, settings string) {
	t.Helper()
	l.solve(t, lab)
	if green := l.judge(t, lab, settings); green.Verdict != verdict.Pass {
		t.Errorf("the solution of lab %d is %s: %+v", lab, green.Verdict, green)
	}
}

func (l *learner) solve(t *testing.T, lab int) {
	t.Helper()
	if out, err := l.run(t, l.course, fmt.Sprintf("make solve-%d", lab)); err != nil {
		t.Fatalf("make solve-%d: %v\n%s", lab, err, out)
	}
}

// goCaches are the settings by which another home uses this machine's build cache and module cache: without them, every
// learner would compile everything again.
func goCaches(t *testing.T) (env []string, modules string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", "-json", "GOCACHE", "GOMODCACHE").Output()
	set := map[string]string{}
	if err == nil {
		err = json.Unmarshal(out, &set)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range set {
		env = append(env, name+"="+value)
	}
	return env, set["GOMODCACHE"]
}
