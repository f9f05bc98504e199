package proof

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// wayLimit bounds one command of a learner. The first one compiles the checks.
const wayLimit = 10 * time.Minute

// TestALearnersWay does lab 4 as a learner does, with nothing but the command, in a checkout and a home of its own: red,
// a hint, the solution, green, and nothing left. Each verdict has a fresh kind cluster.
func TestALearnersWay(t *testing.T) {
	l := lab{binary: buildLab(t), root: filepath.Join(t.TempDir(), "checkout"), home: t.TempDir(), limit: wayLimit}
	coursetest.CopyCheckout(t, root, l.root)
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	dirs := strings.Fields(string(caches))
	l.env = append(os.Environ(), "HOME="+l.home, "GOMODCACHE="+dirs[0], "GOCACHE="+dirs[1])
	c := load(t)
	kind := newJudge(t, c).Clusters.Provider()
	before, err := kind.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	red := l.run(t, "--cluster=kind", "check", "4")
	if red.code != exit.Fail || !strings.Contains(red.stdout, "fail: ") || !strings.Contains(red.stdout, "`make hint-4` says more") {
		t.Errorf("the starter: exit code %d\n%s\n%s", red.code, red.stdout, red.stderr)
	}
	l.requireDone(t, l.run(t, "hint", "4"), "make hint-4")
	l.requireDone(t, l.run(t, "solve", "4"), "solution of lab 4")
	l.requireDone(t, l.run(t, "--cluster=kind", "check", "4"), fmt.Sprintf("pass: all %d checks hold", len(c.Labs[3].Checks)))
	l.requireDone(t, l.run(t, "progress"), "lab 4")
	l.requireDone(t, l.run(t, "down"), "Nothing was running.")

	if after, err := kind.List(t.Context()); err != nil || !slices.Equal(after, before) {
		t.Errorf("there are the clusters %q, %v, and there were %q", after, err, before)
	}
	if left, err := filepath.Glob(filepath.Join(l.root, ".lab", "clusters", "*", "owner.json")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(l.home, ".kube")); err == nil {
		t.Error("the learner's ~/.kube was written")
	}
}
