package rehearsal_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/rehearsal"
)

func says(findings ...rehearsal.Finding) func(context.Context) []rehearsal.Finding {
	return func(context.Context) []rehearsal.Finding { return findings }
}

func play(t *testing.T, checks ...rehearsal.Check) (report rehearsal.Report, told, progress []string) {
	t.Helper()
	report, err := rehearsal.Play(t.Context(), checks, func(f rehearsal.Finding) { told = append(told, f.String()) },
		func(line string) { progress = append(progress, line) })
	if err != nil {
		t.Fatal(err)
	}
	return report, told, progress
}

// What is wrong is told once, with its command, and does not hide what has nothing to do with it.
func TestWhatDependsOnSomethingWrongIsNotTried(t *testing.T) {
	never := func(context.Context) []rehearsal.Finding {
		t.Error("a check was tried without what it needs")
		return nil
	}
	report, told, progress := play(t,
		rehearsal.Check{Name: "machine", Doing: "looking at the machine", Ask: says(
			rehearsal.Good("docker answers"), rehearsal.Bad("make setup", "%d MB of memory", 12))},
		rehearsal.Check{Name: "cluster", Doing: "making a cluster", After: []string{"machine"}, Ask: never},
		rehearsal.Check{Name: "lab 1", After: []string{"port", "cluster"}, Ask: never},
		rehearsal.Check{Name: "port", Ask: says(rehearsal.Doubt("make x", "taken"))},
		rehearsal.Check{Name: "server", After: []string{"port"}, Ask: says(rehearsal.Good("answers"))},
	)
	want := []string{
		"✓ machine     docker answers",
		"✗ machine     12 MB of memory  ->  make setup",
		"· cluster     not tried, because of machine",
		"· lab 1       not tried, because of cluster",
		"! port        taken  ->  make x",
		"✓ server      answers",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"looking at the machine"}, progress); diff != "" {
		t.Errorf("progress: %s", diff)
	}
	for mark, n := range map[rehearsal.Mark]int{
		rehearsal.Fine: 2, rehearsal.Doubtful: 1, rehearsal.Wrong: 1, rehearsal.Untried: 2,
	} {
		if got := report.Count(mark); got != n {
			t.Errorf("%d findings are %s, want %d", got, mark, n)
		}
	}
}

// What a check says when it was interrupted would send people to mend what is not broken.
func TestAnInterruptIsNoFinding(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	interrupted := func(context.Context) []rehearsal.Finding {
		cancel()
		return []rehearsal.Finding{rehearsal.Bad("make doctor", "no cluster")}
	}
	var told []rehearsal.Finding
	_, err := rehearsal.Play(ctx, []rehearsal.Check{
		{Name: "machine", Ask: says(rehearsal.Good("fine"))},
		{Name: "cluster", Ask: interrupted},
		{Name: "server", Ask: func(context.Context) []rehearsal.Finding { t.Error("it goes on"); return nil }},
	}, func(f rehearsal.Finding) { told = append(told, f) }, func(string) {})
	if !errors.Is(err, context.Canceled) || len(told) != 1 {
		t.Errorf("%v; told %v", err, told)
	}
}

func TestAFaultOfTheMachineNamesItsOwnCommand(t *testing.T) {
	problem := &clusters.Problem{What: "no engine answers", Mend: "make setup", Err: errors.New("refused\nand more")}
	for _, tc := range []struct {
		err  error
		want string
	}{
		{fmt.Errorf("make a cluster: %w", problem), "✗  no engine answers: refused  ->  make setup"},
		{errors.New("no space left\nin /tmp"), "✗  no space left  ->  make doctor"},
		{&clusters.Problem{What: "it is odd"}, "✗  it is odd  ->  make doctor"},
	} {
		got := strings.Join(strings.Fields(rehearsal.Failed(tc.err, "make doctor").String()), " ")
		if want := strings.Join(strings.Fields(tc.want), " "); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAnEstimateGrowsWithTheRoomAndShrinksWithTheMachine(t *testing.T) {
	const one = 20 * time.Second
	for _, tc := range []struct {
		n, cores int
		want     string
	}{
		{0, 2, "10 s"},   // nothing to make
		{1, 2, "20 s"},   // no less than one takes
		{12, 2, "3 min"}, // 168 s: two cores are busy with 1.4 at a time
		{12, 1, "4 min"}, // one after the other
		{12, 8, "50 s"},  // 42 s of work; two rounds would be 40
		{9, 16, "20 s"},  // one round
		{12, 0, "4 min"}, // as on one core
	} {
		if got := rehearsal.About(rehearsal.Estimate(tc.n, tc.cores, one)); got != tc.want {
			t.Errorf("%d clusters on %d cores: about %s, want %s", tc.n, tc.cores, got, tc.want)
		}
	}
}
