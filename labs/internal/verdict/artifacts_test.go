package verdict

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestMakeArtifactsRemovesOldestRuns(t *testing.T) {
	state := t.TempDir()
	foreign := filepath.Join(state, "artifacts", "lab-check-0a1b2c3d") // what a cluster logged whose creation failed
	if err := os.MkdirAll(foreign, 0o755); err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range keptRuns + 2 {
		ids = append(ids, newRunID(time.Unix(int64(i), 0)))
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

// The id of a run elsewhere becomes the name of a folder here.
func TestAdoptRefusesPaths(t *testing.T) {
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
