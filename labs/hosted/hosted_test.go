package hosted

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestAQuestionArrivesAsItWasAsked(t *testing.T) {
	asked := Question{Labs: []int{4}, Seed: 5, Storm: "long", Workspace: course.Tree{
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

func TestHiddenFoldersAreNotSent(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"cmd/main.go", ".aws/credentials", "hack/.cache/x", "bin/manager", "hack/bin/run.sh", ".golangci.yml"} {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := read(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{".golangci.yml", "cmd/main.go", "hack/bin/run.sh"}, slices.Sorted(maps.Keys(tree))); diff != "" {
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
	_, err := (&Judges{}).Ask(t.Context(), dir, Question{Labs: []int{4}})
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Fix, "move") {
		t.Errorf("Ask() = %v, want a Problem that says what to do", err)
	}
}

// A judge that is killed has said something, and given no verdict. Whoever lost the connection to one asks for its log again.
func TestALogIsHeardOnceAndToItsEnd(t *testing.T) {
	var told []string
	j := Judges{Progress: func(line string) { told = append(told, strings.TrimSpace(line)) }}
	const begin, end = "{\"progress\":\"checking\"}\npanic: no space\n", "{\"answer\":{\"results\":[{\"lab\":4,\"verdict\":\"pass\"}],\"cost\":{\"cpuSeconds\":2}}}\n"
	answer, _, lines := j.hear(strings.NewReader(begin+end[:20]), 0)
	if answer != nil || lines != 2 {
		t.Errorf("hear() = %+v after %d lines of a log that is cut off", answer, lines)
	}
	answer, _, _ = j.hear(strings.NewReader(begin+end), lines)
	if answer == nil || answer.Results[0].Lab != 4 || answer.Results[0].Verdict != "pass" || answer.Cost.CPUSeconds != 2 {
		t.Errorf("hear() = %+v", answer)
	}
	if diff := cmp.Diff([]string{"checking", "panic: no space"}, told); diff != "" {
		t.Error(diff)
	}
}

func TestAJudgeSaysWhatKeptItFromItsVerdict(t *testing.T) {
	j := Judges{Progress: func(string) {}}
	_, why, _ := j.hear(strings.NewReader("{\"problem\":{\"what\":\"no sandbox came\",\"fix\":\"kubectl get pods\"}}\n"), 0)
	if why == nil || why.What != "no sandbox came" || why.Fix != "kubectl get pods" {
		t.Errorf("hear() = %+v", why)
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

// Whoever's code runs in the Pod can write such a line.
func TestALineOfAPodTakesNoMemory(t *testing.T) {
	j := Judges{Progress: func(string) {}}
	for _, check := range []string{"{},", "null,"} {
		line := `{"answer":{"results":[{"checks":[` + strings.Repeat(check, 1<<20) + "{}]}]}}\n"
		if answer, _, _ := j.hear(strings.NewReader(line), 0); answer != nil {
			t.Errorf("%d checks were read", len(answer.Results[0].Checks))
		}
	}
	packed, err := Pack(make([]struct{}, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	if files, err := (&Answer{Artifacts: packed}).Files(); err == nil {
		t.Errorf("%d files were read", len(files))
	}
}

// A learner's code decides how much there is to say about it.
func TestAVerdictIsHeardHoweverMuchThereIsToSay(t *testing.T) {
	j := Judges{Progress: func(string) {}}
	fields := make([]finding.Field, 100)
	for i := range fields {
		fields[i] = finding.Field{Path: strings.Repeat(",", 5000)}
	}
	for name, a := range map[string]Answer{
		"artifacts": {Results: []*verdict.Result{{Lab: 4, Verdict: verdict.Fail}}, Artifacts: make([]byte, logLimit)},
		"braces":    {Results: []*verdict.Result{{Lab: 4, Verdict: verdict.Fail, Build: &verdict.Build{Output: strings.Repeat(`{"\\,`, 50_000)}}}},
		"texts":     {Results: []*verdict.Result{{Lab: 4, Verdict: verdict.Fail, Checks: slices.Repeat([]verdict.Check{{ID: "creates", Seen: strings.Repeat("<", 16<<10)}}, 60)}}},
		"fields":    {Results: []*verdict.Result{{Lab: 4, Verdict: verdict.Fail, Checks: []verdict.Check{{ID: "creates", Fields: fields}}}}},
	} {
		fit := a.Fit()
		line, err := json.Marshal(Line{Answer: &fit})
		if err != nil {
			t.Fatal(err)
		}
		if answer, _, _ := j.hear(strings.NewReader(string(line)+"\n"), 0); answer == nil || answer.Results[0].Verdict != verdict.Fail {
			t.Errorf("%s: the answer is not heard", name)
		}
	}
}

func TestWhatNobodyUnpacksIsNotPacked(t *testing.T) {
	tree := course.Tree{}
	for n := range 15_000 {
		tree[strings.Repeat("folder/", 320)+strconv.Itoa(n)] = course.File{}
	}
	if packed, err := Pack(tree); err == nil {
		var again course.Tree
		t.Errorf("packed in %d bytes; unpacked: %v", len(packed), Unpack(bytes.NewReader(packed), &again))
	}
}

func TestAnAnswerIsOneToTheQuestion(t *testing.T) {
	good := func() *verdict.Result {
		return &verdict.Result{Schema: 1, Lab: 4, Checks: []verdict.Check{{ID: "creates"}}}
	}
	for name, change := range map[string]func(*verdict.Result){
		"another lab": func(r *verdict.Result) { r.Lab = 5 }, "another schema": func(r *verdict.Result) { r.Schema = 2 },
		"a long id": func(r *verdict.Result) { r.Checks[0].ID = strings.Repeat("x", 70_000) },
		"too many":  func(r *verdict.Result) { r.Checks = make([]verdict.Check, 2000) },
	} {
		r := good()
		change(r)
		if (&Answer{Results: []*verdict.Result{r}}).answers(Question{Labs: []int{4}}) {
			t.Errorf("%s is taken for an answer", name)
		}
	}
	if a := (&Answer{Results: []*verdict.Result{good()}}); !a.answers(Question{Labs: []int{4}}) || a.answers(Question{Labs: []int{4, 5}}) {
		t.Error("an answer is none")
	}
}
