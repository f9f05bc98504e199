package grade_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// class makes a folder for each learner, with a module in it.
func class(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range names {
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "go.mod"), []byte("module "+filepath.Base(name)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// graded runs a grader with a judge of the test's own.
func graded(t *testing.T, dir string, labs []int, judge grade.Judge) (map[string]grade.Grade, string) {
	t.Helper()
	all, _, err := grade.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	grader := &grade.Grader{Course: boardtest.Course(t), Labs: labs, Out: out, Judge: judge, Progress: func(string) {}}
	grades := map[string]grade.Grade{}
	if err := grader.Run(t.Context(), all, func(g grade.Grade) { grades[g.Name] = g }); err != nil {
		t.Fatal(err)
	}
	return grades, out
}

// passing lets everybody pass.
func passing(c *course.Course) grade.Judge {
	return func(_ context.Context, _, _ string, labs []int) ([]*verdict.Result, error) {
		var results []*verdict.Result
		for _, n := range labs {
			results = append(results, boardtest.Result(c, n, "run", time.Now()))
		}
		return results, nil
	}
}

func TestWhatIsWrongWithOneDoesNotStopTheRest(t *testing.T) {
	c := boardtest.Course(t)
	dir := class(t, "ada", "bob", "eve", "zoe")
	if err := os.Symlink("/", filepath.Join(dir, "eve", "root")); err != nil {
		t.Fatal(err)
	}
	grades, _ := graded(t, dir, []int{1, 2}, func(ctx context.Context, state, workspace string, labs []int) ([]*verdict.Result, error) {
		if strings.Contains(state, "bob") {
			return nil, &clusters.Problem{What: "the disk is full", Fix: "make room"}
		}
		return passing(c)(ctx, state, workspace, labs)
	})
	want := map[string]verdict.Verdict{"ada": verdict.Pass, "bob": verdict.Environment, "eve": verdict.Fail, "zoe": verdict.Pass}
	for name, v := range want {
		if got := grades[name]; got.Verdict() != v || len(got.Results) != 2 {
			t.Errorf("%s: %s, %d results", name, got.Verdict(), len(got.Results))
		}
	}
	if first := grade.First(grades["eve"].Results); !strings.Contains(first, "symbolic link") {
		t.Errorf("eve: %s", first)
	}
	if first := grade.First(grades["bob"].Results); !strings.Contains(first, "the disk is full") {
		t.Errorf("bob: %s", first)
	}
}

// A learner who hands in results hands in files like others; the judge's alone count.
// A judge elsewhere says so of what is too large to be sent there.
func TestWhatAJudgeRefusesIsItsLearners(t *testing.T) {
	grades, _ := graded(t, class(t, "ada"), []int{4, 5}, func(context.Context, string, string, []int) ([]*verdict.Result, error) {
		return nil, &grade.Refused{Why: "it has 2000 KiB"}
	})
	results := grades["ada"].Results
	if len(results) != 2 || results[0].Verdict != verdict.Fail || results[1].Build == nil || results[1].Build.Output != "it has 2000 KiB" {
		t.Errorf("%+v", results)
	}
}

// Verdicts that are made elsewhere take no place here.
func TestManyAreGradedAtATime(t *testing.T) {
	all, _, err := grade.Find(class(t, "ada", "bob", "eve"))
	if err != nil {
		t.Fatal(err)
	}
	c, here := boardtest.Course(t), make(chan struct{}, 3)
	grader := &grade.Grader{
		Course: c, Labs: []int{4}, Out: t.TempDir(), Parallel: 3, Progress: func(string) {},
		Judge: func(ctx context.Context, _, _ string, labs []int) ([]*verdict.Result, error) {
			here <- struct{}{}
			for len(here) < cap(here) && ctx.Err() == nil { // until all are
				time.Sleep(time.Millisecond)
			}
			return []*verdict.Result{boardtest.Result(c, labs[0], "run", time.Now())}, ctx.Err()
		},
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := 0
	if err := grader.Run(ctx, all, func(grade.Grade) { told++ }); err != nil || told != 3 {
		t.Errorf("%d grades, %v", told, err)
	}
}

func TestResultsThatWereHandedInCountForNothing(t *testing.T) {
	c := boardtest.Course(t)
	dir := class(t, "eve")
	forged := `{"schema":1,"lab":4,"verdict":"pass"}`
	for _, name := range []string{".lab/results/lab-4.json", "results/lab-4.json", "report.txt", "artifacts/suite.json"} {
		file := filepath.Join(dir, "eve", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(forged), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	red := c.Labs[3].Checks[0].ID
	grades, out := graded(t, dir, []int{4}, func(_ context.Context, state, workspace string, _ []int) ([]*verdict.Result, error) {
		if !strings.HasPrefix(workspace, filepath.Join(state, "workspace")) {
			t.Errorf("results would lie in %s, with what was handed in in %s", state, workspace)
		}
		for _, name := range []string{"results", "artifacts", "report.txt"} {
			if _, err := os.Lstat(filepath.Join(state, name)); err == nil {
				t.Errorf("%s was there before there was a verdict", name)
			}
		}
		return []*verdict.Result{boardtest.Result(c, 4, "run", time.Now(), red)}, nil
	})
	if got := grades["eve"]; got.Verdict() != verdict.Fail || grade.First(got.Results) != "lab 4: "+red {
		t.Errorf("%s, %s", got.Verdict(), grade.First(got.Results))
	}
	if info, err := os.Stat(filepath.Join(out, "eve")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("what was handed in is for others to read: %v, %v", info.Mode(), err)
	}
	if report, err := os.ReadFile(filepath.Join(out, "eve", "report.txt")); err != nil || strings.Contains(string(report), forged) {
		t.Errorf("%s, %v", report, err)
	}
}

// The labs before the one about rights are judged with all rights, as `lab check` judges each of them.
func TestALabThatRunsOthersAgainIsJudgedAlone(t *testing.T) {
	c := boardtest.Course(t)
	var runs [][]int
	grades, _ := graded(t, class(t, "ada"), []int{1, 4, 7}, func(ctx context.Context, state, workspace string, labs []int) ([]*verdict.Result, error) {
		runs = append(runs, labs)
		return passing(c)(ctx, state, workspace, labs)
	})
	var want [][]int
	for _, n := range []int{1, 4, 7} {
		switch alone := len(c.Labs[n-1].Reruns) > 0; {
		case alone:
			want = append(want, []int{n})
		case len(want) == 0:
			want = append(want, []int{n})
		default:
			want[0] = append(want[0], n)
		}
	}
	if diff := cmp.Diff(want, runs); diff != "" {
		t.Error(diff)
	}
	if len(grades["ada"].Results) != 3 {
		t.Errorf("%d results", len(grades["ada"].Results))
	}
}

func TestNamesAreHarmless(t *testing.T) {
	dir := class(t, "ada.git", "=1+1", "a,b\x1b[31m\nred", "José Núñez", strings.Repeat("x", 200), "a-b", "A b")
	all, others, err := grade.Find(dir)
	if err != nil || len(all) != 7 || len(others) != 0 {
		t.Fatalf("%v, %v, %v", all, others, err)
	}
	var ids, names []string
	for _, s := range all {
		ids, names = append(ids, strings.ToLower(s.ID)), append(names, s.Name)
	}
	for _, id := range ids {
		if id == "" || len(id) > 70 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
			t.Errorf("%q is no name for a file", id)
		}
	}
	slices.Sort(ids)
	if len(slices.Compact(ids)) != 7 {
		t.Errorf("two learners share a folder: %v", ids)
	}
	for _, wanted := range []string{"ada", "a,b red", "José Núñez"} {
		if !slices.Contains(names, wanted) {
			t.Errorf("no %q in %q", wanted, names)
		}
	}
}

func TestALineSaysWhoseItIs(t *testing.T) {
	all, _, err := grade.Find(class(t, "ada", "ada.git", "ada (ada)", "\x1b[mada", "bob"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	if len(names) != 5 || len(slices.Compact(slices.Sorted(slices.Values(names)))) != 5 || names[4] != "bob" {
		t.Errorf("they are called %q", names)
	}
}

func TestAFolderWithNobodyInItIsWrongInput(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, filepath.Join(empty, "missing"), filepath.Join(empty, "notes.txt")} {
		if _, _, err := grade.Find(dir); exit.Code(err) != exit.UsageError {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestTheTableHasALineForEachLearner(t *testing.T) {
	c := boardtest.Course(t)
	red := c.Labs[1].Checks[0].ID
	var out bytes.Buffer
	table := grade.NewTable(&out, []int{1, 2}, []grade.Submission{{Name: "ada"}, {Name: strings.Repeat("x", 50)}})
	table.Tell(grade.Grade{Submission: grade.Submission{Name: "ada"}, Results: []*verdict.Result{
		boardtest.Result(c, 1, "r", time.Now()), boardtest.Result(c, 2, "r", time.Now(), red),
	}})
	table.Tell(grade.Grade{Submission: grade.Submission{Name: strings.Repeat("x", 50)}, Results: []*verdict.Result{
		{Lab: 1, Verdict: verdict.Fail, Build: &verdict.Build{Output: "cmd/main.go:3: \x1b[31mundefined\nsecond line"}},
	}})
	table.Tell(grade.Grade{Submission: grade.Submission{Name: "bob"}, Results: []*verdict.Result{
		boardtest.Result(c, 1, "r", time.Now()), boardtest.Result(c, 2, "r", time.Now()),
	}})
	want := "learner                         1      2      failed first\n" +
		"ada                             pass   fail   lab 2: " + red + "\n" +
		strings.Repeat("x", 29) + "…  fail   -      lab 1: build: cmd/main.go:3: undefined\n" +
		"bob                             pass   pass\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}
