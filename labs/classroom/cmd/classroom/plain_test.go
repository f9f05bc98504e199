//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	seen "github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain/plaintest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// The places of the classroom beside those of the lab command: see labs/cmd/lab.
func TestTextFromElsewhereIsPlain(t *testing.T) {
	plaintest.Check(t, plaintest.Places{
		"grade: the name of a submission": func(t *testing.T) string {
			all, _ := handedIn(t)
			return all[0].Name
		},
		"grade: the name of what is no submission": func(t *testing.T) string {
			_, others := handedIn(t)
			return others[0]
		},
		"grade: why something is refused": func(t *testing.T) string {
			return graded(t, hosted.Answer{Refused: plaintest.Hostile}, nil).Build.Output
		},
		"grade: why nobody could judge": func(t *testing.T) string {
			return graded(t, hosted.Answer{}, errors.New(plaintest.Hostile)).Environment.Finding
		},
		"grade: the line": func(*testing.T) string {
			return grade.Grade{Results: []*verdict.Result{{Lab: 1, Verdict: verdict.Fail, Build: &verdict.Build{Output: plaintest.Hostile}}}}.Line()
		},
		"the board: what a learner's machine sent": sent(func(r *verdict.Result) string { return fmt.Sprint(r.Checks[0]) }),
	})
}

// handedIn is a folder with a submission and a file, both with that name.
func handedIn(t *testing.T) (all []grade.Submission, others []string) {
	t.Helper()
	dir := t.TempDir()
	err := errors.Join(os.Mkdir(filepath.Join(dir, plaintest.Name), 0o755), os.WriteFile(filepath.Join(dir, plaintest.Name+".txt"), nil, 0o600))
	if err == nil {
		all, others, err = grade.Find(dir)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all, others
}

// graded is the result of lab 1 of a submission of which a container says so.
func graded(t *testing.T, answer hosted.Answer, err error) (result *verdict.Result) {
	t.Helper()
	g := grade.Grader{Course: coursetest.Load(t, root), Labs: []int{1}, Out: t.TempDir(), Progress: func(string) {}}
	g.Judge = func(context.Context, string, []int) (hosted.Answer, error) { return answer, err }
	told := func(g grade.Grade) { result = g.Results[0] }
	if err := g.Run(t.Context(), []grade.Submission{{Name: "ada", Path: t.TempDir()}}, told); err != nil {
		t.Fatal(err)
	}
	return result
}

// sent is what the board keeps of a result.
func sent(kept func(*verdict.Result) string) func(*testing.T) string {
	return func(t *testing.T) string {
		c := coursetest.Load(t, root)
		r := &verdict.Result{
			Schema: 1, Lab: 1, Run: "r1", Verdict: verdict.Fail, Started: time.Now(),
			Checks: []verdict.Check{{
				ID: c.Labs[0].Checks[0].ID, State: verdict.Failed, Seen: plaintest.Hostile,
				Evidence: []seen.Evidence{{Title: plaintest.Hostile, Lines: []string{plaintest.Hostile}}},
			}},
		}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := progress.Accept(data, c)
		if err != nil {
			t.Fatal(err)
		}
		return kept(accepted)
	}
}
