package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/mutants"
)

func TestMutantsChoose(t *testing.T) {
	c := &course.Course{Labs: []*course.Lab{{Number: 1}, {Number: 2}}}
	wrong := []*mutants.Mutant{{ID: "a", Lab: 1}, {ID: "b", Lab: 1}, {ID: "b", Lab: 2}}
	for want, run := range map[string]mutantsRun{
		"1/b 2/b":                      {only: "b"},
		"2/b":                          {only: "2/b"},
		"2/solution":                   {only: "solution", lab: 2},
		"1/starter 1/solution 1/a 1/b": {lab: 1},
		"":                             {lab: 3},
	} {
		if got := strings.Trim(fmt.Sprint(run.choose(t.Context(), c, wrong)), "[]"); got != want {
			t.Errorf("%+v: %s, want %s", run, got, want)
		}
	}
}
