package verdict_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestTheWorstVerdictIsTheExitCode(t *testing.T) {
	pass, fail := &verdict.Result{Verdict: verdict.Pass}, &verdict.Result{Verdict: verdict.Fail}
	environment := &verdict.Result{Verdict: verdict.Environment, Environment: verdict.Finding{Finding: "the disk is full"}}
	for want, results := range map[int][]*verdict.Result{
		exit.OK:               {pass, pass},
		exit.Fail:             {pass, fail},
		exit.EnvironmentError: {fail, environment, pass},
	} {
		if got := exit.Code(verdict.Worst(results).Err()); got != want {
			t.Errorf("exit code %d, want %d", got, want)
		}
	}
}
