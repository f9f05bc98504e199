package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/bench"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
)

func TestBenchSaysWhatIsWrongBeforeItMeasures(t *testing.T) {
	for says, args := range map[string][]string{
		"cannot be negative":     {"bench", "--rounds", "-1"},
		"--short, --growth and":  {"bench", "--short", "--growth"},
		"leave out --rounds":     {"bench", "--growth", "--rounds", "5"},
		"--rooms makes each":     {"bench", "--rooms", "--rounds", "5"},
		"--rooms are different":  {"bench", "--growth", "--rooms"},
		"without --short":        {"bench", "--short", "--write", "docs/performance.md"},
		"of at least 5":          {"bench", "--rounds", "4", "--write", "docs/performance.md"},
		"no-such-page.md":        {"bench", "--write", "testdata/no-such-page.md"},
		"CLUSTER=embedded":       {"--cluster", "embedded", "bench"},
		"compares with kind":     {"--cluster", "embedded", "bench", "--growth"},
		`unknown command "four"`: {"bench", "four"},
	} {
		t.Run(says, func(t *testing.T) {
			a, out, _ := newTestApp(t)
			err := execute(t.Context(), a, args)
			if exit.Code(err) != exit.UsageError || out.Len() > 0 || !strings.Contains(err.Error(), says) {
				t.Errorf("lab %s: %v, printed %q, want wrong usage that says %q", strings.Join(args, " "), err, out, says)
			}
		})
	}
}

func TestBenchRounds(t *testing.T) {
	for name, tc := range map[string]struct {
		run  benchRun
		want int
	}{
		"full":        {benchRun{}, 5},
		"short":       {benchRun{short: true}, 1},
		"more short":  {benchRun{short: true, rounds: 2}, 2},
		"growth":      {benchRun{growth: true}, 1},
		"many":        {benchRun{rounds: 20, page: "page"}, 20},
		"full, write": {benchRun{page: "page"}, 5},
	} {
		if err := tc.run.complete(); err != nil || tc.run.rounds != tc.want || tc.run.seed == 0 {
			t.Errorf("%s: %+v, %v, want %d rounds and a seed", name, tc.run, err, tc.want)
		}
	}
}

// A target is a promise and a limit an alarm: only the second one fails, and only in the run that has no targets.
func TestWhatABenchEndsWith(t *testing.T) {
	slow := []bench.Sample{{Series: bench.GreenStock, Seconds: 40}, {Series: bench.GreenCold, Seconds: 39}}
	missed := []bench.Sample{{Series: bench.GreenStock, Seconds: 40}, {Series: bench.GreenCold, Seconds: 24}}
	machine := &clusters.Problem{What: "the engine is gone"}
	for name, tc := range map[string]struct {
		short    bool
		samples  []bench.Sample
		failures []error
		want     int
	}{
		"all well":                      {want: exit.OK},
		"short, a target is missed":     {short: true, samples: missed, want: exit.OK},
		"short, a limit is exceeded":    {short: true, samples: slow, want: exit.Fail},
		"a limit is exceeded":           {samples: slow, want: exit.OK},
		"a verdict was wrong":           {failures: []error{errors.New("a right answer fails")}, want: exit.Fail},
		"the machine is at fault":       {failures: []error{machine}, want: exit.EnvironmentError},
		"both":                          {failures: []error{machine, errors.New("wrong"), machine}, want: exit.Fail},
		"short, the machine, and limit": {short: true, samples: slow, failures: []error{machine}, want: exit.Fail},
	} {
		t.Run(name, func(t *testing.T) {
			a, out, _ := newTestApp(t)
			report := &bench.Report{Short: tc.short, Samples: tc.samples}
			for _, err := range tc.failures {
				report.Failures = append(report.Failures, bench.NewFailure("subject", 1, err))
			}
			report.Fill()
			if got := exit.Code(a.judgeBench(report)); got != tc.want {
				t.Errorf("exit code %d, want %d", got, tc.want)
			}
			if told := strings.Contains(out.String(), "broken: green verdict of lab 4, cold"); told != (tc.short && cmp.Equal(tc.samples, slow)) {
				t.Errorf("printed %q", out)
			}
		})
	}
}

func TestWrongAnswersOfABenchAreDrawnFromItsSeed(t *testing.T) {
	c, err := course.Load("../../..")
	if err != nil {
		t.Fatal(err)
	}
	draw := func(seed int64) (ids []string) {
		answers, err := wrongAnswersTo(c, bench.Lab, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, answer := range answers {
			if answer.Mutant == nil || answer.Lab != bench.Lab {
				t.Errorf("%d/%s is no wrong answer to lab %d", answer.Lab, answer.ID(), bench.Lab)
			}
			ids = append(ids, answer.ID())
		}
		return ids
	}
	first := draw(1)
	if len(first) < fullRounds*wrongEach {
		t.Errorf("%d wrong answers, want no repetition in a full run", len(first))
	}
	if !cmp.Equal(first, draw(1)) || cmp.Equal(first, draw(2)) {
		t.Error("the order is not that of the seed")
	}
	sorted := cmpopts.SortSlices(func(a, b string) bool { return a < b })
	if diff := cmp.Diff(first, draw(2), sorted); diff != "" {
		t.Errorf("another seed draws from others: %s", diff)
	}
}
