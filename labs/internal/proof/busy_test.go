package proof

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// calmLoops is how many busy programs for two processors are borne: right answers pass beside them.
const calmLoops = 4

// TestABusyMachineIsNoFault judges right answers while other programs want the processors: BUSY_LOOPS of them, 40 when it
// is not set, from the first check to the last. None may fail, and beside few of them all have to pass. A wrong answer
// is not told from a slow one beside many. BUSY_RUNS repeats it, each answer on a cluster of its own.
func TestABusyMachineIsNoFault(t *testing.T) {
	loops, runs := number(t, "BUSY_LOOPS", 40), number(t, "BUSY_RUNS", 1)
	c := load(t)
	j := newJudge(t, c)
	type answer struct {
		name, workspace string
		labs            []int
	}
	var answers []answer
	for n := 4; n <= 7; n++ {
		answers = append(answers, answer{fmt.Sprintf("solution-%d", n), coursetest.Stage(t, c, n), []int{n}})
	}
	for _, workspace := range rightAnswers(t) {
		answers = append(answers, answer{filepath.Base(workspace), workspace, []int{4, 5, 6, 7}})
	}
	for _, a := range answers {
		t.Run(a.name, func(t *testing.T) {
			compileDependencies(t, a.workspace)
			j.Cluster = lasting(t, j)
			for range runs {
				for _, r := range judgeBeside(t, j, loops, a.workspace, a.labs) {
					t.Logf("beside %d programs lab %d is %s: %s", loops, r.Lab, r.Verdict, r.Environment.Finding)
					if r.Verdict == verdict.Fail || r.Verdict == verdict.Environment && loops <= calmLoops {
						t.Error(describe(r))
					}
				}
			}
		})
	}
	if loops > calmLoops {
		j.Cluster = lasting(t, j)
		r := judgeBeside(t, j, loops, coursetest.Stage(t, c, 3), []int{4})[0]
		if r.Verdict != verdict.Environment || !strings.Contains(r.Environment.Finding, "too busy") {
			t.Errorf("the starter of lab 4 is %s, want environment\n%s", r.Verdict, describe(r))
		}
	}
}

// judgeBeside judges while n other programs want a processor, from the first check to the last.
func judgeBeside(t *testing.T, j *verdict.Judge, n int, workspace string, labs []int) []*verdict.Result {
	t.Helper()
	end := func() {}
	defer func() { end() }()
	j.Workspace, j.Seed, j.Ready = workspace, 0, func() { end = busy(t, n) }
	results, err := j.Check(t.Context(), labs)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

func number(t *testing.T, name string, otherwise int) int {
	t.Helper()
	n, err := strconv.Atoi(cmp.Or(os.Getenv(name), strconv.Itoa(otherwise)))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// lasting is a cluster until the test ends.
func lasting(t *testing.T, j *verdict.Judge) *clusters.Cluster {
	t.Helper()
	cluster, err := j.Clusters.Create(t.Context(), clusters.Spec{Image: j.NodeImage.Ref})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.Clusters.Delete(context.WithoutCancel(t.Context()), cluster.Name); err != nil {
			t.Error(err)
		}
	})
	return cluster
}

// busy has n programs run that want a processor all the time, until the returned function is called. Their parent ends at
// once: what descends from this process counts as the lab's own.
func busy(t *testing.T, n int) (end func()) {
	t.Helper()
	script := fmt.Sprintf("for i in $(seq %d); do timeout 900 sh -c 'while :; do :; done' >/dev/null 2>&1 & echo $!; done", n)
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
