package proof

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// loops is how many programs want the two processors beside a verdict.
const loops = 40

// TestBusyMachineIsNoFailure judges solutions while other programs want the processors, from the first check to the last. None may
// fail; the starter does so on a quiet machine, and is not told from a slow solution on this one.
func TestBusyMachineIsNoFailure(t *testing.T) {
	for _, tc := range []struct {
		stage, lab int
		passes     bool
	}{{4, 4, true}, {5, 5, true}, {7, 7, true}, {3, 4, false}} {
		t.Run(fmt.Sprintf("stage %d", tc.stage), func(t *testing.T) {
			j := newJudge(t)
			end := func() {}
			defer func() { end() }()
			j.Workspace, j.Ready = coursetest.Stage(t, j.Course, tc.stage), func() { end = startLoops(t) }
			results, err := j.Check(t.Context(), []int{tc.lab})
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			busy := r.Verdict == verdict.Environment && strings.Contains(r.Environment.Finding, "busy")
			if passed := tc.passes && r.Verdict == verdict.Pass; !busy && !passed {
				t.Errorf("the verdict is %s\n%s", r.Verdict, describe(r))
			}
		})
	}
}

// startLoops has programs run that want a processor all the time, until the returned function is called. Their parent ends at once:
// what descends from this process counts as the lab's own.
func startLoops(t *testing.T) (end func()) {
	t.Helper()
	script := fmt.Sprintf("for i in $(seq %d); do timeout 900 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!; done", loops)
	out, err := exec.CommandContext(t.Context(), "sh", "-c", script).Output()
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		for pid := range strings.FieldsSeq(string(out)) {
			_ = exec.Command("kill", pid).Run() // and timeout passes it on
		}
	}
}
