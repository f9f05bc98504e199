package grade_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/grade"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
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

// judging is what a container would say.
type judging func(ctx context.Context, path string, labs []int) (hosted.Answer, error)

// grader grades labs in a folder of the test's.
func grader(t *testing.T, judge judging, labs ...int) *grade.Grader {
	t.Helper()
	return &grade.Grader{
		Course: coursetest.Load(t, "../../.."), Labs: labs, Judge: judge, Checks: "v1", Runtime: "runc", Out: t.TempDir(), Progress: func(string) {},
	}
}

func graded(t *testing.T, g *grade.Grader, dir string) map[string][]*verdict.Result {
	t.Helper()
	all, _, err := grade.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	grades := map[string][]*verdict.Result{}
	if err := g.Run(t.Context(), all, func(g grade.Grade) { grades[g.Name] = g.Results }); err != nil {
		t.Fatal(err)
	}
	return grades
}

// passing lets everybody pass.
func passing(_ context.Context, _ string, labs []int) (answer hosted.Answer, _ error) {
	for _, n := range labs {
		answer.Results = append(answer.Results, &verdict.Result{Lab: n, Verdict: verdict.Pass})
	}
	return answer, nil
}

func TestWhatIsWrongWithOneDoesNotStopTheRest(t *testing.T) {
	say := map[string]hosted.Answer{
		"eve": {Refused: "the zip cannot be unpacked"},
		"bob": {Problem: &clusters.Problem{What: "the disk is full", Fix: "make room"}},
		"dan": {Results: []*verdict.Result{{Lab: 2, Verdict: verdict.Pass}}}, // another lab than was asked for
		"nul": {Results: []*verdict.Result{nil, {Lab: 2, Verdict: verdict.Pass}}},
	}
	g := grader(t, func(ctx context.Context, path string, labs []int) (hosted.Answer, error) {
		name := filepath.Base(path)
		if answer, ok := say[name]; ok {
			return answer, nil
		}
		if name == "fay" {
			return hosted.Answer{}, errors.New("the engine does not answer")
		}
		return passing(ctx, path, labs)
	}, 1, 2)
	grades := graded(t, g, class(t, "ada", "bob", "dan", "eve", "fay", "nul", "zoe"))
	for name, want := range map[string]struct {
		verdict verdict.Verdict
		says    string
	}{
		"ada": {verdict.Pass, ""}, "bob": {verdict.Environment, "the disk is full"}, "dan": {verdict.Environment, "other labs"},
		"nul": {verdict.Environment, "other labs"}, "eve": {verdict.Fail, "cannot be unpacked"}, "fay": {verdict.Environment, "does not answer"}, "zoe": {verdict.Pass, ""},
	} {
		got := grades[name]
		if verdict.Worst(got) != want.verdict || len(got) != 2 || !strings.Contains(grade.Grade{Results: got}.Line(), want.says) {
			t.Errorf("%s: %s, %d results, %q", name, verdict.Worst(got), len(got), grade.Grade{Results: got}.Line())
		}
	}
	report, err := os.ReadFile(filepath.Join(g.Out, "eve", "report.txt"))
	if info, statErr := os.Stat(filepath.Join(g.Out, "eve")); err != nil || statErr != nil || info.Mode().Perm() != 0o700 || !strings.Contains(string(report), "cannot be unpacked") {
		t.Errorf("%s, %v, %v", report, err, statErr)
	}
}

// Killed and run again, grading goes on. What was graded is graded again where another grade could come of it.
func TestAGradeThatIsThereIsKept(t *testing.T) {
	dir := class(t, "ada", "bob")
	var judged []string
	machine := map[string]bool{"bob": true} // whose machine is at fault
	g := grader(t, func(ctx context.Context, path string, labs []int) (hosted.Answer, error) {
		name := filepath.Base(path)
		judged = append(judged, name)
		if machine[name] {
			return hosted.Answer{}, errors.New("the disk is full")
		}
		return passing(ctx, path, labs)
	}, 4)
	for _, step := range []struct {
		name   string
		change func()
		want   string
	}{
		{"the first time", func() {}, "ada bob"},
		{"a machine at fault", func() { machine["bob"] = false }, "bob"},
		{"nothing changed", func() {}, ""},
		{"a file was changed", func() { write(t, filepath.Join(dir, "ada", "go.mod"), "module ada // again") }, "ada"},
		{"other checks", func() { g.Checks = "v2" }, "ada bob"},
		{"another runtime", func() { g.Runtime = "runsc" }, "ada bob"},
		{"other labs", func() { g.Labs = []int{4, 5} }, "ada bob"},
	} {
		judged = nil
		step.change()
		grades := graded(t, g, dir)
		if strings.Join(judged, " ") != step.want || len(grades) != 2 {
			t.Errorf("%s: judged %q, want %q; %d grades", step.name, judged, step.want, len(grades))
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestManyAreGradedAtATime(t *testing.T) {
	var begun atomic.Int32
	all := make(chan struct{})
	g := grader(t, func(ctx context.Context, path string, labs []int) (hosted.Answer, error) {
		if begun.Add(1) == 3 {
			close(all)
		}
		select {
		case <-all:
		case <-ctx.Done():
		}
		return passing(ctx, path, labs)
	}, 4)
	g.Parallel = 3
	if grades := graded(t, g, class(t, "ada", "bob", "eve")); len(grades) != 3 {
		t.Errorf("%d grades", len(grades))
	}
}

func TestNamesAreHarmless(t *testing.T) {
	dir := class(t, "=1+1", "a,b\x1b[31m\nred", "José Núñez", strings.Repeat("x", 200), "a-b", "A b")
	all, others, err := grade.Find(dir)
	if err != nil || len(all) != 6 || len(others) != 0 {
		t.Fatalf("%v, %v, %v", all, others, err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	for _, wanted := range []string{"a,b red", "José Núñez"} {
		if !slices.Contains(names, wanted) {
			t.Errorf("no %q in %q", wanted, names)
		}
	}
}

func TestFoldersAndZipsAreHandedIn(t *testing.T) {
	dir := class(t, "ada", "bob", ".hidden")
	write(t, filepath.Join(dir, "ada.zip"), "")
	write(t, filepath.Join(dir, "notes.txt"), "")
	if err := os.Symlink("/", filepath.Join(dir, "root")); err != nil {
		t.Fatal(err)
	}
	all, others, err := grade.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range all {
		names = append(names, s.Name+" "+filepath.Base(s.Path))
	}
	if diff := cmp.Diff([]string{"ada ada", "ada ada.zip", "bob bob"}, names); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{".hidden", "notes.txt", "root"}, others); diff != "" {
		t.Error(diff)
	}
}

func TestAFolderWithNobodyInItIsWrongInput(t *testing.T) {
	empty := t.TempDir()
	if err := os.WriteFile(filepath.Join(empty, "notes.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{empty, filepath.Join(empty, "missing"), filepath.Join(empty, "notes.txt")} {
		if _, _, err := grade.Find(dir); err == nil {
			t.Errorf("%s: %v", dir, err)
		}
	}
}

func TestALineSaysWhatFailedFirst(t *testing.T) {
	pass, red := &verdict.Result{Lab: 1, Verdict: verdict.Pass}, &verdict.Result{
		Lab: 2, Verdict: verdict.Fail, Checks: []verdict.Check{{ID: "says-name", State: verdict.Failed}},
	}
	for want, results := range map[string][]*verdict.Result{
		"1 of 2  ada  lab 2: says-name": {pass, red},
		"0 of 1  ada  lab 1: build: cmd/main.go:3: undefined second line": {
			{Lab: 1, Verdict: verdict.Fail, Build: &verdict.Build{Output: "cmd/main.go:3: \x1b[31mundefined\nsecond line"}},
		},
		"0 of 1  ada  lab 3: the machine: the disk is full": {
			{Lab: 3, Verdict: verdict.Environment, Environment: verdict.Finding{Finding: "the disk is full"}},
		},
		"1 of 1  ada": {pass},
	} {
		if got := (grade.Grade{Submission: grade.Submission{Name: "ada"}, Results: results}).Line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestNoCellOfTheGradesIsAFormula(t *testing.T) {
	c := coursetest.Load(t, "../../..")
	grades := []grade.Grade{{
		Submission: grade.Submission{Name: "=1+1"}, Runtime: "runsc",
		Results: []*verdict.Result{{Lab: 4, Verdict: verdict.Fail, Build: &verdict.Build{Output: "undefined: x; y"}, Checks: []verdict.Check{{State: verdict.Blocked}}}},
	}}
	want := "learner,lab,title,verdict,holds,of,failed first,cluster\n" +
		"'=1+1,4," + c.Labs[3].Title + ",fail,0,1,\"build: undefined: x, y\",embedded in runsc\n"
	if diff := cmp.Diff(want, string(grade.CSV(c, grades))); diff != "" {
		t.Error(diff)
	}
}
