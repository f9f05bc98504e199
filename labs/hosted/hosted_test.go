package hosted

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
)

func TestAQuestionArrivesAsItWasAsked(t *testing.T) {
	asked := Question{Lab: 4, Seed: 5, Storm: "long", Workspace: course.Tree{
		"cmd/main.go": {Data: []byte("package main\n"), Mode: 0o644}, "hack/run.sh": {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
	}}
	packed, err := Pack(asked)
	if err != nil {
		t.Fatal(err)
	}
	var got Question
	if err := Unpack(bytes.NewReader(packed), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(asked, got); diff != "" {
		t.Error(diff)
	}
}

// It is refused before anything is asked of the cluster: there is none.
func TestAWorkspaceThatNoSecretHoldsIsRefused(t *testing.T) {
	dir, large := t.TempDir(), make([]byte, 2*sentLimit)
	_, _ = rand.Read(large)
	if err := os.WriteFile(filepath.Join(dir, "film.mp4"), large, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := (&Judges{}).Ask(t.Context(), dir, Question{Lab: 4})
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Fix, "move") {
		t.Errorf("Ask() = %v, want a Problem that says what to do", err)
	}
}

// A judge that is killed has said something, and given no verdict. Whoever lost the connection to one asks for its log again.
func TestALogIsHeardOnceAndToItsEnd(t *testing.T) {
	var told []string
	j := Judges{Progress: func(line string) { told = append(told, strings.TrimSpace(line)) }}
	const begin, end = "{\"progress\":\"checking\"}\npanic: no space\n", "{\"answer\":{\"result\":{\"lab\":4,\"verdict\":\"pass\"},\"cost\":{\"cpuSeconds\":2}}}\n"
	answer, lines := j.hear(strings.NewReader(begin+end[:20]), 0)
	if answer != nil || lines != 2 {
		t.Errorf("hear() = %+v after %d lines of a log that is cut off", answer, lines)
	}
	answer, _ = j.hear(strings.NewReader(begin+end), lines)
	if answer == nil || answer.Result.Lab != 4 || answer.Result.Verdict != "pass" || answer.Cost.CPUSeconds != 2 {
		t.Errorf("hear() = %+v", answer)
	}
	if diff := cmp.Diff([]string{"checking", "panic: no space"}, told); diff != "" {
		t.Error(diff)
	}
}

// The learner's code could have written that line.
func TestArtifactsArePlainFiles(t *testing.T) {
	packed, err := Pack(course.Tree{
		"trace.jsonl": {Data: []byte("{}\n"), Mode: 0o755}, "manager.log": {Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink},
	})
	if err != nil {
		t.Fatal(err)
	}
	files, err := (&Answer{Artifacts: packed}).Files()
	if diff := cmp.Diff(course.Tree{"trace.jsonl": {Data: []byte("{}\n"), Mode: 0o600}}, files); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
}
