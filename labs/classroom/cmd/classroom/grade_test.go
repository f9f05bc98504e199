package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func TestLabsToGrade(t *testing.T) {
	c := boardtest.Course(t)
	for _, tc := range []struct {
		run  gradeRun
		want []int // nil is wrong usage
	}{
		{gradeRun{}, []int{1, 2, 3, 4, 5, 6, 7}},
		{gradeRun{lab: 4}, []int{4}},
		{gradeRun{labs: "2"}, []int{2}},
		{gradeRun{labs: "1-3"}, []int{1, 2, 3}},
		{gradeRun{labs: "5, 1-2,2"}, []int{1, 2, 5}},
		{gradeRun{labs: "3-1"}, nil},
		{gradeRun{labs: "0-2"}, nil},
		{gradeRun{labs: "1-8"}, nil},
		{gradeRun{labs: "all"}, nil},
		{gradeRun{labs: "1-"}, nil},
		{gradeRun{lab: 8}, nil},
		{gradeRun{lab: 1, labs: "1"}, nil},
	} {
		got, err := tc.run.chosen(c)
		if tc.want == nil && exit.Code(err) != exit.UsageError {
			t.Errorf("%+v: %v, %v, want wrong usage", tc.run, got, err)
		}
		if diff := cmp.Diff(tc.want, got); tc.want != nil && (diff != "" || err != nil) {
			t.Errorf("%+v: %v, %s", tc.run, err, diff)
		}
	}
}

func TestGradingNobodyIsWrongUsage(t *testing.T) {
	a := &app{cli.App{Root: "../../../..", State: t.TempDir()}}
	for _, dir := range []string{t.TempDir(), "missing"} {
		if err := a.grade(t.Context(), gradeRun{dir: dir}); exit.Code(err) != exit.UsageError {
			t.Errorf("%s: %v", dir, err)
		}
	}
}
