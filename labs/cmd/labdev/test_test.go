package main

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestPhasesStopAtFirstFailure(t *testing.T) {
	holds := func(context.Context) (count, error) { return count{passed: 2}, nil }
	setup := func(context.Context) (count, error) { return count{}, nil }
	fails := func(context.Context) (count, error) { return count{passed: 1, failed: 1}, nil }
	breaks := func(context.Context) (count, error) { return count{}, exit.Environment(errors.New("no engine")) }
	for name, c := range map[string]struct {
		second func(context.Context) (count, error)
		goOn   bool
		code   int
		last   string
	}{
		"all hold":             {setup, false, exit.OK, "4 passed, 0 failed"},
		"failure":              {fails, false, exit.Fail, "3 passed, 1 failed"},
		"failure, and goes on": {fails, true, exit.Fail, "5 passed, 1 failed"},
		"error":                {breaks, false, exit.EnvironmentError, "== second"},
		"error, and goes on":   {breaks, true, exit.Fail, "4 passed, 1 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			a := &app{App: cli.App{Out: &out, Err: io.Discard}}
			err := a.testPhases(t.Context(), c.goOn, phase{"first", holds}, phase{"second", c.second}, phase{"third", holds})
			if exit.Code(err) != c.code || !strings.HasSuffix(out.String(), "\n"+c.last+"\n") {
				t.Errorf("exit code %d, want %d; want the last line %q of\n%s", exit.Code(err), c.code, c.last, &out)
			}
		})
	}
}

// For root a test that was skipped counts as failed; so does a package without a result.
func TestGoTestCounts(t *testing.T) {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		test string
		want count
	}{
		"subtests":     {`func TestA(t *testing.T) { t.Run("b", func(*testing.T) {}) }`, count{passed: 2}},
		"failure":      {`func TestA(t *testing.T) { t.Error("no") }`, count{failed: 1}},
		"skip":         {`func TestA(t *testing.T) { t.Skip("not today") }`, map[bool]count{true: {failed: 1}}[os.Geteuid() == 0]},
		"syntax error": {`func TestA(`, count{failed: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			rel, err := filepath.Rel(root, dir)
			if err != nil {
				t.Fatal(err)
			}
			coursetest.Write(t, dir, "go.mod", "module example.org/m\n\ngo 1.26\n")
			coursetest.Write(t, dir, "m_test.go", "package m\n\nimport \"testing\"\n\n"+c.test+"\n")
			var out strings.Builder
			a := &app{App: cli.App{Root: root, Out: &out, Err: &out}}
			if got, err := a.goTest(t.Context(), rel, nil, "./..."); err != nil || got != c.want {
				t.Errorf("%v, %v, want %v\n%s", got, err, c.want, &out)
			}
		})
	}
}
