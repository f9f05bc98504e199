//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	boardroom "github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/classroom/judge"
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
			return graded(t, judge.HandIn{Refused: plaintest.Hostile}, nil).Build.Output
		},
		"grade: why nobody could judge": func(t *testing.T) string {
			return graded(t, judge.HandIn{}, errors.New(plaintest.Hostile)).Environment.Finding
		},
		"grade: the table": func(t *testing.T) string {
			var out bytes.Buffer
			grade.NewTable(&out, []int{1}, nil).Tell(grade.Grade{Results: []*verdict.Result{
				{Lab: 1, Verdict: verdict.Fail, Build: &verdict.Build{Output: plaintest.Hostile}},
			}})
			return out.String()
		},
		"the board: what a learner's machine sent": sent(func(r *verdict.Result) string { return fmt.Sprint(r.Checks[0]) }),
		"the board: an advice":                     sent(func(r *verdict.Result) string { return fmt.Sprint(r.Advice) }),
		"the room: what is wrong with a cluster":   func(*testing.T) string { return firstLine(errors.New(plaintest.Hostile)) },
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
func graded(t *testing.T, answer judge.HandIn, err error) (result *verdict.Result) {
	t.Helper()
	g := grade.Grader{Course: boardtest.Course(t), Labs: []int{1}, Out: t.TempDir(), Progress: func(string) {}}
	g.Judge = func(context.Context, string, []int) (judge.HandIn, error) { return answer, err }
	told := func(g grade.Grade) { result = g.Result(1) }
	if err := g.Run(t.Context(), []grade.Submission{{Name: "ada", ID: "ada", Path: t.TempDir()}}, told); err != nil {
		t.Fatal(err)
	}
	return result
}

// sent is what the board keeps of a result.
func sent(kept func(*verdict.Result) string) func(*testing.T) string {
	return func(t *testing.T) string {
		c := boardtest.Course(t)
		r := boardtest.Result(c, 1, "r1", time.Now(), c.Labs[0].Checks[0].ID)
		r.Checks[0].Seen, r.Advice = plaintest.Hostile, []string{plaintest.Hostile}
		r.Checks[0].Evidence = []seen.Evidence{{Title: plaintest.Hostile, Lines: []string{plaintest.Hostile}}}
		data, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		accepted, err := boardroom.Accept(data, c)
		if err != nil {
			t.Fatal(err)
		}
		return kept(accepted)
	}
}

// A learner who administers a cluster decides what its nodes say, and each line of the table is as wide as the longest.
func TestALearnersLineIsShort(t *testing.T) {
	line := firstLine(errors.New("node n: " + strings.Repeat("é", 1<<20)))
	if n := utf8.RuneCountInString(line); n > lineLimit || !strings.HasPrefix(line, "node n: é") {
		t.Errorf("it has %d characters: %.100s", n, line)
	}
}
