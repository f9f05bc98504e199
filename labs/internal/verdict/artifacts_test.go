package verdict

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestOldArtifactsGoAndOthersStay(t *testing.T) {
	state := t.TempDir()
	started := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var ids []string
	for i := range keptRuns + 2 {
		id := newRunID(started.Add(time.Duration(i) * time.Second))
		if !runID.MatchString(id) {
			t.Fatalf("%s is not the name of a run", id)
		}
		ids = append(ids, id)
		if i == 0 { // what a cluster logged whose creation failed
			if err := os.MkdirAll(filepath.Join(state, "artifacts", "lab-check-0a1b2c3d"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := makeArtifacts(state, id); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]bool{
		ids[0]: false, ids[1]: false, ids[2]: true, ids[len(ids)-1]: true, "lab-check-0a1b2c3d": true,
	} {
		if _, err := os.Stat(filepath.Join(state, "artifacts", name)); (err == nil) != want {
			t.Errorf("%s: %v, want it kept: %v", name, err, want)
		}
	}
	if entries, err := os.ReadDir(filepath.Join(state, "artifacts")); err != nil || len(entries) != keptRuns+1 {
		t.Errorf("%d folders, %v; want %d", len(entries), err, keptRuns+1)
	}
}

// What a judge elsewhere says of its run is a name of a folder here.
func TestARunFromElsewhereIsKeptAmongOurs(t *testing.T) {
	state := t.TempDir()
	if err := Adopt(state, []*Result{{Schema: 1, Lab: 4, Verdict: Fail, Run: "20261127-131500-ABCD"}}); err != nil {
		t.Fatal(err)
	}
	if kept, err := Read(state, "", 4); err != nil || kept.Verdict != Fail {
		t.Errorf("%+v, %v", kept, err)
	}
	if events, err := History(state, ""); err != nil || len(events) != 1 {
		t.Errorf("history: %+v, %v", events, err)
	}
	if err := Adopt(state, []*Result{{Run: "../../elsewhere"}}); err == nil {
		t.Error("Adopt() took a run with the name of another folder")
	}
}
