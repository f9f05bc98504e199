package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
)

func TestMutantsChooses(t *testing.T) {
	c := &course.Course{Labs: []*course.Lab{{Number: 1}, {Number: 2}}}
	all := []*mutants.Mutant{{ID: "a", Lab: 1}, {ID: "b", Lab: 1}, {ID: "c", Lab: 2}}
	for name, tc := range map[string]struct {
		run  mutantsRun
		want string
	}{
		"a wrong answer":             {mutantsRun{only: "b"}, "1/b"},
		"all solutions":              {mutantsRun{only: "solution"}, "1/solution 2/solution"},
		"the solution of a lab":      {mutantsRun{only: "solution", lab: 2}, "2/solution"},
		"everything":                 {mutantsRun{all: true}, "1/solution 1/a 1/b 2/solution 2/c"},
		"the wrong answers to a lab": {mutantsRun{lab: 1}, "1/a 1/b"},
	} {
		t.Run(name, func(t *testing.T) {
			answers, err := tc.run.choose(c, all)
			var got []string
			for _, a := range answers {
				got = append(got, fmt.Sprintf("%d/%s", a.Lab, a.ID()))
			}
			if strings.Join(got, " ") != tc.want || err != nil {
				t.Errorf("%v, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestMutantsRepeatsEachAnswerWithAnotherRun(t *testing.T) {
	answers := mutants.Repeat([]mutants.Answer{{Lab: 1}, {Lab: 2}}, 3)
	var got []string
	for _, a := range answers {
		got = append(got, fmt.Sprint(a.Lab, "-", a.Run))
	}
	if want := []string{"1-0", "2-0", "1-1", "2-1", "1-2", "2-2"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestMutantsRefusesWhatItDoesNotUnderstand(t *testing.T) {
	a, _, _ := newTestApp(t)
	a.Root = coursetest.New(t)
	for args, want := range map[string]string{
		"--repeat 0":              "REPEAT=0: judge each answer at least once",
		"--storm calm":            "STORM=calm is not known: use long, or leave it out",
		"--only nobody":           "there is no such answer: they are solution, and labs/*/mutants/<id>.patch",
		"--only solution --lab 9": "there is no such answer: they are solution, and labs/*/mutants/<id>.patch",
	} {
		err := cli.Execute(t.Context(), newRootCommand(a), append([]string{"mutants"}, strings.Fields(args)...))
		if exit.Code(err) != exit.UsageError || errors.Is(err, exit.ErrTold) || err.Error() != want {
			t.Errorf("lab mutants %s: %v, want %s", args, err, want)
		}
	}
}

func TestMutantsWritesEachAnswerOnce(t *testing.T) {
	a, out, _ := newTestApp(t)
	a.Root = coursetest.New(t)
	into := filepath.Join(t.TempDir(), "answers")
	if err := cli.Execute(t.Context(), newRootCommand(a), []string{"mutants", "--only", "solution", "--lab", "1", "--repeat", "3", "--into", into}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "wrote "+filepath.Join(into, "1", "solution")+"\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
