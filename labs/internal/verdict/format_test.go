package verdict_test

import (
	"encoding/json"
	"encoding/xml"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	. "github.com/example/operator-lab/labs/internal/verdict"
)

const manifest = `title: Say whom
checks:
- {id: takes-name, title: It takes a name, regions: {other: greet}, hints: {other: [look at os.Args, deeper]}}
- {id: says-name, title: It says the name, hints: {other: [think]}}
`

// formatted writes a failure, code that does not compile and a broken machine. The workspace is the solution of lab 1.
func formatted(t *testing.T, format string) string {
	t.Helper()
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/02-name/lab.yaml", manifest)
	c := coursetest.Load(t, root)
	checks := []Check{
		{ID: "says-name", Title: "It says the name", Lab: 2, State: Failed, Seen: "x"},
		{ID: "takes-name", Title: "It takes a name", Lab: 2, State: Failed, Cause: "silent", Expected: "a <name>", Seen: "nothing:\n  at all"},
		{ID: "shouts", Title: "It shouts", Lab: 3, State: Blocked, BlockedBy: "takes-name"},
	}
	results := []*Result{
		{Verdict: Fail, Checks: checks},
		{Verdict: Fail, Build: &Build{Output: "# a/cmd\ncmd/a.go:12:2: b: <no>\n\thave (c)\ngo.mod:3: d"}},
		{Verdict: Environment, Environment: Finding{Finding: "no disk", Fix: "buy"}, Checks: checks},
	}
	stage := coursetest.Stage(t, c, 1)
	t.Chdir(stage)
	for _, r := range results {
		r.Schema, r.Lab, r.Workspace = 1, 2, stage
	}
	var out strings.Builder
	if err := Format(&out, format, results, c); err != nil || checks[1].Hint != "" {
		t.Fatal(err, checks)
	}
	return out.String()
}

func TestFormatForEditors(t *testing.T) {
	want := "error: It says the name: x [says-name]\nmain.go:16: error: It takes a name: nothing: at all [takes-name]\nlab 2: fail\n" +
		"# a/cmd\ncmd/a.go:12:2: error: b: <no>\n\thave (c)\ngo.mod:3: error: d\nlab 2: fail\n" +
		"error: no disk (fix: buy) [environment]\nlab 2: environment\n"
	if diff := cmp.Diff(want, formatted(t, GCC)); diff != "" {
		t.Error(diff)
	}
}

func TestFormatJSON(t *testing.T) {
	var got Result
	err := json.NewDecoder(strings.NewReader(formatted(t, JSON))).Decode(&got)
	if c := got.Checks[1]; err != nil || got.Schema != 1 || c.Hint != "look at os.Args" || c.File != "main.go" || c.Line != 16 || c.Expected != "a <name>" {
		t.Errorf("%v: %+v", err, got)
	}
}

func TestFormatJUnit(t *testing.T) {
	text := formatted(t, JUnit)
	var got reporters.JUnitTestSuites
	err := xml.Unmarshal([]byte(text), &got)
	if err != nil || got.Tests != 5 || got.Failures != 3 || got.Errors != 1 || got.Disabled != 1 || len(got.TestSuites[0].TestCases) != 5 {
		t.Errorf("%v, or wrong counts:\n%s", err, text)
	}
	for _, want := range []string{"main.go:16: expected a &lt;name&gt;", "hint: look at os.Args", "b: &lt;no&gt;", `message="blocked takes-name"`, "fix: buy"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
}
