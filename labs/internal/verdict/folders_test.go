package verdict

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
)

func TestMakeArtifactsRemovesOldestRuns(t *testing.T) {
	state := t.TempDir()
	foreign := filepath.Join(state, "artifacts", "lab-check-0a1b2c3d") // what a cluster logged whose creation failed
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range keptRuns + 2 {
		ids = append(ids, NewRunID(time.Unix(int64(i), 0)))
		if _, err := makeArtifacts(state, ids[i]); err != nil {
			t.Fatal(err)
		}
	}
	for dir, want := range map[string]bool{ids[0]: false, ids[1]: false, ids[2]: true, ids[len(ids)-1]: true, filepath.Base(foreign): true} {
		if _, err := os.Stat(filepath.Join(state, "artifacts", dir)); (err == nil) != want {
			t.Errorf("%s: %v, want it kept: %v", dir, err, want)
		}
	}
}

func TestScratchNamesBadTMPDIR(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	dir, _, err := newScratch()
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Fix, "TMPDIR") {
		t.Errorf("%q, %v", dir, err)
	}
}

// The folder of a run is known by its lock: a run in another container has no process here.
func TestSweepKeepsLockedAndForeignScratch(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	running, remove, err := newScratch()
	if err != nil {
		t.Fatal(err)
	}
	killed, foreign := filepath.Join(tmp, scratchPrefix+"1"), filepath.Join(tmp, scratchPrefix+"2")
	want := map[string]bool{running: true, killed: false}
	if err := os.Mkdir(killed, 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // nobody else can give a folder away
		want[foreign] = true
		if err := errors.Join(os.Mkdir(foreign, 0o755), os.Chown(foreign, 4242, 4242)); err != nil {
			t.Fatal(err)
		}
	}
	sweepScratch()
	for dir, stays := range want {
		if _, err := os.Stat(dir); stays != (err == nil) {
			t.Errorf("%s: %v, want that it stays: %t", dir, err, stays)
		}
	}
	remove()
	if _, err := os.Stat(running); !os.IsNotExist(err) {
		t.Errorf("after remove: %v", err)
	}
}
