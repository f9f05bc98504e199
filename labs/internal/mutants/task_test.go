package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/cka"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/practice"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestTaskAnswers(t *testing.T) {
	p := &practice.Practice{}
	for n, dir := range []string{"same", "changed"} {
		p.Tasks = append(p.Tasks, &practice.Task{
			Lab: course.Lab{Dir: dir}, Name: fmt.Sprintf("cka-%d", n), Solutions: []practice.Script{{Name: "solution-a"}, {Name: "solution-b"}},
			Wrong: []practice.Script{{Name: "x"}, {Name: "y"}},
		})
	}
	got := strings.Trim(fmt.Sprint(TaskAnswers(p, func(dir string) bool { return dir == "changed" })), "[]")
	const want = "cka-0/solution-a cka-0/solution-b cka-0/x cka-1/solution-a cka-1/solution-b cka-1/x cka-1/y"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestCompareTask(t *testing.T) {
	task := &practice.Task{Lab: course.Lab{Checks: []course.Check{{ID: "a", Hints: map[string][]string{"cold": {"heat"}}}, {ID: "b"}}}}
	solution := practice.Script{Name: "solution", Text: "# x"}
	wrong := practice.Script{Name: "wrong", Text: "# x", Caught: "a", Cause: "cold"}
	check := func(id string, state verdict.State, cause string) verdict.Check {
		return verdict.Check{ID: id, State: state, Cause: cause, Expected: "warm", Seen: "cold"}
	}
	for name, tc := range map[string]struct {
		script  practice.Script
		verdict verdict.Verdict
		a, b    verdict.Check
		says    string
	}{
		"solution":             {solution, verdict.Pass, check("a", verdict.Passed, ""), check("b", verdict.Passed, ""), ""},
		"solution fails":       {solution, verdict.Fail, check("a", verdict.Passed, ""), check("b", verdict.Failed, "cold"), "does not pass: b (cold)"},
		"wrong":                {wrong, verdict.Fail, check("a", verdict.Failed, "cold"), check("b", verdict.Failed, "old"), ""},
		"wrong passes":         {wrong, verdict.Pass, check("a", verdict.Passed, ""), check("b", verdict.Passed, ""), "no check caught it"},
		"wrong, another check": {wrong, verdict.Fail, check("a", verdict.Passed, ""), check("b", verdict.Failed, "cold"), "should be caught by a (cold)"},
	} {
		var complaints []string
		TaskAnswer{task, tc.script}.compare(&verdict.Result{Verdict: tc.verdict, Checks: []verdict.Check{tc.a, tc.b}}, "hint  heat",
			func(format string, args ...any) { complaints = append(complaints, fmt.Sprintf(format, args...)) })
		if got := strings.Join(complaints, "; "); tc.says == "" && got != "" || !strings.Contains(got, tc.says) {
			t.Errorf("%s: %q, want %q", name, got, tc.says)
		}
	}
}

// Task 2 of the checkout is right. Each case spoils a copy of it: a text is replaced in a file, or files are removed.
func TestLintTasks(t *testing.T) {
	for says, spoil := range map[string]struct{ files, before, after string }{
		"":                         {},
		"curriculum.yaml":          {"task.yaml", "(RBAC)", ""},
		"page":                     {"task.yaml", "kubernetes.io", "example.com"},
		"two solutions":            {files: "solutions/c*"},
		"three wrong answers":      {files: "wrong/[ego]*"},
		"caught by the check":      {files: "wrong/writes-object.sh"},
		`for the cause "cold"`:     {"wrong/group.patch", "other-account", "cold"},
		"patch failed":             {"wrong/group.patch", "- kind: Service", "- kind: System"},
		"changes 2 solutions":      {"wrong/group.patch", "\n YAML", "\n YAML\n--- /dev/null\n+++ b/solutions/x.sh\n@@ -0,0 +1 @@\n+x"},
		"no hints for other":       {"task.yaml", "other:\n", "some-verbs2:\n"},
		"gives the cause no-scala": {"task.yaml", "no-scale", "no-scala"},
		"there is no check ruds":   {"task.yaml", "id: reads", "id: ruds"},
		"does not show {{team}}":   {"question.md", "{{team}}", "mine"},
		"more than 24 lines":       {"question.md", "Give", strings.Repeat("\n", 24)},
		"more than 80 columns":     {"question.md", "Do not", strings.Repeat("x", 80)},
		"begins with a comment":    {"solutions/manifest.sh", "# One", "One"},
		"no value for {{pod}}":     {"wrong/one-list.sh", "{{team}}", "{{pod}}"},
	} {
		root := t.TempDir()
		if err := os.CopyFS(filepath.Join(root, practice.Dir), os.DirFS(filepath.Join("..", "..", "cka"))); err != nil {
			t.Fatal(err)
		}
		names, _ := filepath.Glob(filepath.Join(root, practice.Dir, "02-rbac", spoil.files))
		for _, name := range names {
			if spoil.before != "" {
				coursetest.Write(t, "", name, strings.ReplaceAll(coursetest.Read(t, "", name), spoil.before, spoil.after))
			} else if spoil.files != "" {
				_ = os.Remove(name)
			}
		}
		p, err := practice.Load(root, root, cka.Programs())
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Trim(fmt.Sprint(LintTasks(t.Context(), root, p)), "[]")
		if !strings.Contains(got, says) || says == "" && got != "" {
			t.Errorf("%q, want %q", got, says)
		}
	}
}
