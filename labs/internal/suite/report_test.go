package suite

import (
	"os"
	"path/filepath"
	"testing"
)

// What a run that was given up has written must not be taken for the words of the one that follows.
func TestARunOfOneProcessBeginsAnew(t *testing.T) {
	artifacts := t.TempDir()
	if once, err := RunsOnlyOnce(artifacts); once || err != nil {
		t.Errorf("nobody gave up: %v, %v", once, err)
	}
	for _, file := range []string{OneProcessFile, StatusFile, "trace.jsonl", "manager.log", "manager-2.log", OutcomesFile} {
		if err := os.WriteFile(filepath.Join(artifacts, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if once, err := RunsOnlyOnce(artifacts); !once || err != nil {
		t.Errorf("a process gave up: %v, %v", once, err)
	}
	left, err := os.ReadDir(artifacts)
	if err != nil || len(left) != 1 || left[0].Name() != OutcomesFile { // somebody reads that one already
		t.Errorf("left are %v, %v", left, err)
	}
	if once, err := RunsOnlyOnce(artifacts); once || err != nil {
		t.Errorf("asked again: %v, %v", once, err)
	}
}
