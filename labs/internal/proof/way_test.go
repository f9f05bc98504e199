package proof

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/exit"
)

// wayLimit bounds one command of a learner. The first one compiles the checks.
const wayLimit = 10 * time.Minute

// TestALearnersWay does lab 4 as a learner does, with nothing but the command, in a checkout and a home of its own: red,
// a hint, the solution, green, and nothing left. Each verdict has a fresh kind cluster.
func TestALearnersWay(t *testing.T) {
	l := lab{binary: buildLab(t), root: copyCheckout(t), home: t.TempDir(), limit: wayLimit}
	l.env = append(os.Environ(), "HOME="+l.home, "GOMODCACHE="+goEnv(t, "GOMODCACHE"), "GOCACHE="+goEnv(t, "GOCACHE"))
	nodes := l.nodes(t)

	red := l.run(t, "--cluster=kind", "check", "4")
	if red.code != exit.Fail || !strings.Contains(red.stdout, "fail: ") || !strings.Contains(red.stdout, "`make hint-4` says more") {
		t.Errorf("the starter: exit code %d\n%s\n%s", red.code, red.stdout, red.stderr)
	}
	l.requireDone(t, l.run(t, "hint", "4"), "make hint-4")
	l.requireDone(t, l.run(t, "solve", "4"), "solution of lab 4")
	l.requireDone(t, l.run(t, "--cluster=kind", "check", "4"), "pass: all 10 checks hold")
	l.requireDone(t, l.run(t, "progress"), "lab 4")
	l.requireDone(t, l.run(t, "down"), "Nothing was running.")

	if now := l.nodes(t); now != nodes {
		t.Errorf("containers %q are left, and there were %q", now, nodes)
	}
	if left, err := filepath.Glob(filepath.Join(l.root, ".lab", "clusters", "*", "owner.json")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
	if _, err := os.Stat(filepath.Join(l.home, ".kube")); err == nil {
		t.Error("the learner's ~/.kube was written")
	}
}

// nodes are the names of the containers of this checkout's clusters.
func (l lab) nodes(t *testing.T) string {
	t.Helper()
	engine := newJudge(t, load(t)).Clusters.Provider().(interface{ Engine() string }).Engine()
	out, err := exec.CommandContext(t.Context(), engine, "ps", "--all", "--format", "{{.Names}}", "--filter", "label=io.x-k8s.kind.cluster").Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// copyCheckout copies the files that git knows of, as they are now.
func copyCheckout(t *testing.T) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "checkout")
	for _, name := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // deleted, and not committed yet
		}
		info, statErr := os.Stat(filepath.Join(root, name))
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}
