package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/proof/gotest"
)

func TestPhasesEndAtTheFirstThatFailsUnlessToldToGoOn(t *testing.T) {
	holds := func(context.Context) (gotest.Count, error) { return gotest.Count{Passed: 2}, nil }
	setup := func(context.Context) (gotest.Count, error) { return gotest.Count{}, nil }
	fails := func(context.Context) (gotest.Count, error) { return gotest.Count{Passed: 1, Failed: 1}, nil }
	breaks := func(context.Context) (gotest.Count, error) {
		return gotest.Count{}, exit.Environment(errors.New("no engine"))
	}
	for name, c := range map[string]struct {
		second func(context.Context) (gotest.Count, error)
		goOn   bool
		code   int
		last   string
	}{
		"all hold":                {setup, false, exit.OK, "4 passed, 0 failed, 0 skipped"},
		"one fails":               {fails, false, exit.Fail, "3 passed, 1 failed, 0 skipped"},
		"one fails, and goes on":  {fails, true, exit.Fail, "5 passed, 1 failed, 0 skipped"},
		"one breaks":              {breaks, false, exit.EnvironmentError, "2 passed, 1 failed, 0 skipped"},
		"one breaks, and goes on": {breaks, true, exit.Fail, "4 passed, 1 failed, 0 skipped"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			a := &app{App: cli.App{Out: &out, Err: io.Discard}}
			err := a.testPhases(t.Context(), c.goOn, phase{"first", "", holds}, phase{"second", "", c.second}, phase{"third", "", holds})
			if exit.Code(err) != c.code || !strings.HasSuffix(out.String(), "\n"+c.last+"\n") {
				t.Errorf("exit code %d, want %d; want the last line %q of\n%s", exit.Code(err), c.code, c.last, &out)
			}
			if left := strings.Contains(out.String(), "1 phases were not run"); left != (c.code != exit.OK && !c.goOn) {
				t.Errorf("it says that a phase was not run: %t\n%s", left, &out)
			}
		})
	}
}
