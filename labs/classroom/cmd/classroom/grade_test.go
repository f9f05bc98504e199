package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestLabsToGrade(t *testing.T) {
	c := coursetest.Load(t, root)
	for _, tc := range []struct {
		labs []int
		want []int // nil is wrong usage
	}{
		{nil, []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
		{[]int{5, 2, 1, 2}, []int{1, 2, 5}},
		{[]int{0}, nil},
		{[]int{1, 99}, nil},
	} {
		got, err := labsIn(c, tc.labs)
		if tc.want == nil && exit.Code(err) != exit.UsageError {
			t.Errorf("%v: %v, %v, want wrong usage", tc.labs, got, err)
		}
		if diff := cmp.Diff(tc.want, got); tc.want != nil && (diff != "" || err != nil) {
			t.Errorf("%v: %v, %s", tc.labs, err, diff)
		}
	}
}

func TestGradingNobodyIsWrongUsage(t *testing.T) {
	a := &app{cli.App{Root: root, State: t.TempDir()}}
	for _, dir := range []string{t.TempDir(), "missing"} {
		if err := a.grade(t.Context(), gradeRun{dir: dir, out: t.TempDir()}); exit.Code(err) != exit.UsageError {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestResultsAreNotMixedWithWhatWasHandedIn(t *testing.T) {
	class := t.TempDir()
	ada := mkdir(t, class, "ada")
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(class, link); err != nil {
		t.Fatal(err)
	}
	a := &app{cli.App{Root: root, State: t.TempDir()}}
	for _, run := range []gradeRun{
		{dir: class, out: class}, {dir: class, out: link}, {dir: link, out: filepath.Join(class, ".", "results")}, {dir: class, out: ada}, {dir: class, out: filepath.Join(link, "new")}, {dir: class, out: filepath.Dir(class)},
	} {
		if err := a.grade(t.Context(), run); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "--out") {
			t.Errorf("results of %s in %s: %v", run.dir, run.out, err)
		}
	}
}

// What ends the program in the middle of a class takes nobody's grade.
func TestGradesAreWrittenAfterEachLearner(t *testing.T) {
	dir, out := t.TempDir(), t.TempDir()
	for _, name := range []string{"ada", "bob"} {
		if err := os.WriteFile(filepath.Join(mkdir(t, dir, name), "go.mod"), []byte("module x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, _, err := grade.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	c := coursetest.Load(t, root)
	a := &app{cli.App{State: t.TempDir(), Out: io.Discard, Err: io.Discard}}
	var before []string
	judge := func(context.Context, string, []int) (hosted.Answer, error) {
		data, _ := os.ReadFile(filepath.Join(out, "grades.csv"))
		before = append(before, string(data))
		return hosted.Answer{Results: []*verdict.Result{{Lab: 1, Verdict: verdict.Pass}}}, nil
	}
	if err := a.gradeAll(t.Context(), &grade.Grader{Course: c, Labs: []int{1}, Out: out, Judge: judge, Progress: func(string) {}}, all); err != nil {
		t.Fatal(err)
	}
	if len(before) != 2 || strings.Contains(before[0], "ada") || !strings.Contains(before[1], "ada") {
		t.Errorf("before each learner there was: %q", before)
	}
}

func mkdir(t *testing.T, parent, name string) string {
	t.Helper()
	dir := filepath.Join(parent, name)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}
