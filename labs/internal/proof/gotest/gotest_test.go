package gotest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/proof/gotest"
)

// count runs go test on a module with the given test files, each in a package of its own.
func count(t *testing.T, tests ...string) (gotest.Count, string) {
	t.Helper()
	dir := t.TempDir()
	coursetest.Write(t, dir, "go.mod", "module example.org/m\n\ngo 1.26\n")
	for i, test := range tests {
		coursetest.Write(t, dir, fmt.Sprintf("p%d/m_test.go", i), "package m\n\n"+test)
	}
	var out strings.Builder
	c, err := gotest.Run{Dir: dir, Args: []string{"./..."}, Env: []string{"GOWORK=off"}, Out: &out}.Test(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c, out.String()
}

func TestCounts(t *testing.T) {
	c, out := count(t, `import "testing"
func TestGood(t *testing.T) { t.Run("sub", func(*testing.T) {}) }
func TestBad(t *testing.T) { t.Error("because of this") }
func TestLazy(t *testing.T) { t.Skip("not today") }`)
	if diff := cmp.Diff(gotest.Count{Passed: 2, Failed: 1, Skipped: 1}, c); diff != "" {
		t.Error(diff)
	}
	if !strings.Contains(out, "because of this") {
		t.Errorf("the failure's output is not shown:\n%s", out)
	}
}

func TestCodeThatDoesNotCompileFails(t *testing.T) {
	c, out := count(t, "func TestX(")
	if c.Failed == 0 || !strings.Contains(out, "m_test.go") {
		t.Errorf("%v\n%s", c, out)
	}
}

func TestEveryPackageThatFailsIsCountedAndShown(t *testing.T) {
	const givesUp = `import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { fmt.Println("no engine"); os.Exit(1) }
func TestX(t *testing.T) {}`
	c, out := count(t, `import "testing"
func TestBad(t *testing.T) { t.Error("because of this") }`, givesUp, "func TestX(")
	if want := (gotest.Count{Failed: 3}); c != want || !strings.Contains(out, "no engine") {
		t.Errorf("%v, want %v\n%s", c, want, out)
	}
}

func TestErr(t *testing.T) {
	for _, tc := range []struct {
		count gotest.Count
		want  bool
	}{
		{gotest.Count{Passed: 1}, false},
		{gotest.Count{}, true},
		{gotest.Count{Passed: 1, Skipped: 1}, true},
		{gotest.Count{Passed: 1, Failed: 1}, true},
	} {
		if got := tc.count.Err() != nil; got != tc.want {
			t.Errorf("%v: error %v, want %v", tc.count, got, tc.want)
		}
	}
}
