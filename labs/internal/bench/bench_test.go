package bench_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/bench"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestEveryRoundHasEverySubjectOnceInAnOrderOfItsOwn(t *testing.T) {
	const rounds, subjects = 8, 7
	order := bench.Order(3, rounds, subjects)
	if len(order) != rounds {
		t.Fatalf("%d rounds, want %d", len(order), rounds)
	}
	different := map[string]bool{}
	for i, round := range order {
		different[fmt.Sprint(round)] = true
		sorted := slices.Sorted(slices.Values(round))
		if diff := cmp.Diff([]int{0, 1, 2, 3, 4, 5, 6}, sorted); diff != "" {
			t.Errorf("round %d: %s", i, diff)
		}
	}
	if len(different) < rounds-1 {
		t.Errorf("only %d different orders in %d rounds", len(different), rounds)
	}
	if diff := cmp.Diff(order, bench.Order(3, rounds, subjects)); diff != "" {
		t.Errorf("the same seed gives another order: %s", diff)
	}
	if cmp.Equal(order, bench.Order(4, rounds, subjects)) {
		t.Error("another seed gives the same order")
	}
}

func TestSubjectsAreMeasuredInTurn(t *testing.T) {
	var turns []string
	subject := func(name string) bench.Subject {
		return bench.Subject{Name: name, Measure: func(_ context.Context, round int) ([]bench.Sample, error) {
			turns = append(turns, fmt.Sprintf("%s%d", name, round))
			return []bench.Sample{{Series: name, Seconds: 1}}, nil
		}}
	}
	samples, failures, err := bench.Run(t.Context(), []bench.Subject{subject("a"), subject("b")}, 3, 1, func(string) {})
	if err != nil || len(failures) > 0 || len(samples) != 6 {
		t.Fatalf("Run() = %v, %v, %v, want six samples", samples, failures, err)
	}
	for i, s := range samples {
		if want := fmt.Sprintf("%s%d", s.Series, s.Round); turns[i] != want || s.Round != i/2+1 {
			t.Errorf("sample %d is %s of round %d, and the turn was %s", i, s.Series, s.Round, turns[i])
		}
	}
}

func TestOneFailureDoesNotCostTheRun(t *testing.T) {
	broken := errors.New("broken")
	subjects := []bench.Subject{
		{Name: "bad", Measure: func(context.Context, int) ([]bench.Sample, error) { return []bench.Sample{{Series: "bad"}}, broken }},
		{Name: "good", Measure: func(context.Context, int) ([]bench.Sample, error) { return []bench.Sample{{Series: "good"}}, nil }},
	}
	samples, failures, err := bench.Run(t.Context(), subjects, 2, 1, func(string) {})
	if err != nil || len(samples) != 2 || samples[0].Series != "good" || samples[1].Series != "good" {
		t.Errorf("Run() = %+v, %v, want the samples of the good subject alone", samples, err)
	}
	if len(failures) != 2 || failures[0].Subject != "bad" || !errors.Is(failures[0].Unwrap(), broken) {
		t.Errorf("failures = %+v, want one of each round", failures)
	}
}

func TestAnInterruptEndsTheRunAndIsNoFailure(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	calls := 0
	subjects := []bench.Subject{{Name: "long", Measure: func(ctx context.Context, _ int) ([]bench.Sample, error) {
		calls++
		interrupt()
		return nil, ctx.Err()
	}}}
	_, failures, err := bench.Run(ctx, subjects, 5, 1, func(string) {})
	if !errors.Is(err, context.Canceled) || calls != 1 || len(failures) > 0 {
		t.Errorf("Run() = %v, %d failures after %d calls, want the interrupt alone after one", err, len(failures), calls)
	}
}

// samples are those of a run in which one target is missed, one figure could not be measured, and the rest is met.
func samples() (all []bench.Sample) {
	add := func(series string, s bench.Sample, values ...float64) {
		for i, v := range values {
			s.Series, s.Round = series, i+1
			s.Seconds, s.CoreSeconds = v, v*1.5
			if series == bench.Idle {
				s.Seconds, s.CoreSeconds, s.Bytes = 0, 0, uint64(v*(1<<20))
			}
			all = append(all, s)
		}
	}
	add(bench.GreenStock, bench.Sample{Parts: []bench.Part{{Name: "kind create", Seconds: 14}, {Name: "go test", Seconds: 20}}}, 40, 38, 42, 39, 60)
	add(bench.GreenWarm, bench.Sample{Parts: []bench.Part{{Name: "claim", Seconds: 0.05}, {Name: "checks", Seconds: 3}}}, 4, 5, 5.5, 4.5, 7)
	add(bench.GreenCold, bench.Sample{}, 21, 22, 23, 20, 24)
	add(bench.GreenEmbedded, bench.Sample{Note: "2 of 10 checks need real Pods and were not asked"}, 6, 6, 6, 6, 6)
	add(bench.ReadyEmbedded, bench.Sample{}, 1.2, 1.3, 1.4, 1.5, 1.6)
	add(bench.ReadyEnvtest, bench.Sample{}, 3.2, 3.3, 3.4, 3.5, 3.6)
	add(bench.Claim, bench.Sample{}, 0.04, 0.05, 0.06, 0.05, 0.21)
	add(bench.Create, bench.Sample{}, 9, 10, 11, 10, 10)
	add(bench.CreateStock, bench.Sample{}, 14, 15, 16, 14, 15)
	add(bench.Red, bench.Sample{}, 4, 5, 6, 7, 9)
	add(bench.Idle, bench.Sample{}, 400, 410, 420, 400, 400)
	return all
}

func report() *bench.Report {
	r := &bench.Report{
		Started: time.Date(2026, 11, 21, 20, 15, 0, 0, time.UTC), Command: bench.Commandline(7, 5, bench.FiguresBlock), Seed: 7, Rounds: 5,
		Machine: bench.Machine{
			System: "linux/amd64", Kernel: "6.18.44", Processor: "A processor", Cores: 2, Bytes: 23 << 30, Engine: "docker 20.10.24",
			Cgroup: "v1", Kind: "v0.33.0", Kubernetes: "v1.36.3", NodeImage: "operator-lab.local/node:v1.36.3", Go: "go1.26.8", Commit: "0123456789ab",
		},
		Wrong: bench.WrongAnswers{
			Started: time.Date(2026, 11, 21, 19, 0, 0, 0, time.UTC), Commit: "0123456789ab", Cluster: "kind", Seed: 3, Judged: 120, Of: 120, Caught: 120,
		},
		Failures: []bench.Failure{{Subject: "fresh stock cluster", Round: 2, Error: "cannot create cluster\nlab-bench-1"}},
		Samples:  samples(),
	}
	r.Fill()
	return r
}

func TestRowsCompareWhatTheTableSays(t *testing.T) {
	want := []struct {
		ratio  float64
		result string
	}{
		{5.0 / 40, bench.Met},           // median to median
		{22.0 / 40, bench.Missed},       // by a little
		{6.0 / 40, bench.Met},           //
		{1.4 / 3.4, bench.Met},          //
		{0.21 / 10, bench.Missed},       // the 95th percentile, to the median
		{9.0 / 120, bench.Met},          // seconds are bounded, not the ratio
		{10 * 1.5 / 22.5, bench.Missed}, // core-seconds
		{0, bench.NotMeasured},          // nothing to compare with
	}
	rows := bench.Rows(samples())
	if len(rows) != len(want) {
		t.Fatalf("%d rows, want the eight of the table", len(rows))
	}
	for i, r := range rows {
		if diff := r.Ratio - want[i].ratio; diff > 1e-9 || diff < -1e-9 || r.Result != want[i].result {
			t.Errorf("%s: ratio %v, %s, want %v, %s", r.Figure, r.Ratio, r.Result, want[i].ratio, want[i].result)
		}
	}
}

func TestOnlyWhatIsFarBeyondIsBroken(t *testing.T) {
	if lines := bench.Broken(bench.Rows(samples())); len(lines) > 0 {
		t.Errorf("Broken() = %q, want nothing: targets that are missed by a little are none of its business", lines)
	}
	var slow []bench.Sample
	for _, s := range samples() {
		switch s.Series {
		case bench.GreenWarm:
			s.Seconds *= 4 // half of stock
		case bench.Red:
			s.Seconds *= 4 // 36 s, which is far below 120
		}
		slow = append(slow, s)
	}
	lines := bench.Broken(bench.Rows(slow))
	if len(lines) != 2 || !strings.Contains(lines[0], "warm pool: 0.5 × is beyond 0.4 ×") || !strings.Contains(lines[1], "36.00 s is beyond 30.00 s") {
		t.Errorf("Broken() = %q, want the green and the red verdict", lines)
	}
}

func TestWhatIsPrinted(t *testing.T) {
	var text strings.Builder
	report().Print(&text)
	golden(t, "report.txt", text.String())
	golden(t, "page.md", report().Page())
}

func TestGrowthIsPrinted(t *testing.T) {
	r := report()
	r.Samples, r.Command = nil, bench.Commandline(7, 1, bench.GrowthBlock)
	r.Failures = []bench.Failure{bench.NewFailure("8 kind", 1, errors.New("too many"))}
	r.Growth = []bench.Growth{
		{On: "kind", Clusters: 1, Seconds: 10, CoreSeconds: 14, RestSeconds: 60, Healthy: 1, Bytes: 400 << 20, DiskBytes: 90 << 20, Cores: 0.05, DeleteSeconds: 1},
		{On: "kind", Clusters: 4, Seconds: 30, CoreSeconds: 60, RestSeconds: 600, Healthy: 3, Bytes: 1700 << 20, DiskBytes: 400 << 20, Cores: 0.25, DeleteSeconds: 3},
	}
	r.Fill()
	golden(t, "growth.md", r.Page())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update writes it anew):\n%s", path, diff)
	}
}

func TestNumbersDoNotCountWithoutTheWrongAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*bench.WrongAnswers)
		want   string
	}{
		"none":           {func(w *bench.WrongAnswers) { *w = bench.WrongAnswers{} }, "do not count yet"},
		"one got past":   {func(w *bench.WrongAnswers) { w.Caught, w.Wrong = 119, 1 }, "do not count."},
		"another commit": {func(w *bench.WrongAnswers) { w.Commit = "ffff" }, "another commit"},
		"a sample":       {func(w *bench.WrongAnswers) { w.Judged, w.Caught = 28, 28 }, "a sample"},
		"an older file":  {func(w *bench.WrongAnswers) { w.Commit = "" }, "another commit"},
	} {
		t.Run(name, func(t *testing.T) {
			r := report()
			tc.change(&r.Wrong)
			var text strings.Builder
			r.Print(&text)
			for _, text := range []string{text.String(), r.Page()} {
				if !strings.Contains(text, tc.want) {
					t.Errorf("%q is not said in\n%s", tc.want, text)
				}
			}
		})
	}
}

func TestWithoutContainersThereIsNoNodeImage(t *testing.T) {
	r := report()
	r.Machine.NodeImage = ""
	if page := r.Page(); strings.Contains(page, "node image") || !strings.Contains(page, "commit 0123456789ab.\n") {
		t.Errorf("the machine is described as in\n%s", page)
	}
}

func TestWrongAnswersAreReadFromTheRecord(t *testing.T) {
	path := filepath.Join(t.TempDir(), "mutants.json")
	if w, err := bench.ReadWrongAnswers(path); err != nil || w != (bench.WrongAnswers{}) {
		t.Errorf("ReadWrongAnswers() = %+v, %v without a record, want nothing", w, err)
	}
	const record = `{"schema":1,"started":"2026-11-21T19:00:00Z","commit":"abc","seed":3,"judged":28,"of":120,"caught":27,"wrong":1,"paces":[],"outcomes":[]}`
	if err := os.WriteFile(path, []byte(record), 0o600); err != nil {
		t.Fatal(err)
	}
	want := bench.WrongAnswers{Started: time.Date(2026, 11, 21, 19, 0, 0, 0, time.UTC), Commit: "abc", Seed: 3, Judged: 28, Of: 120, Caught: 27, Wrong: 1}
	if w, err := bench.ReadWrongAnswers(path); err != nil || w != want {
		t.Errorf("ReadWrongAnswers() = %+v, %v, want %+v", w, err, want)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := bench.ReadWrongAnswers(path); err == nil {
		t.Error("half a record is read without an error")
	}
}

func TestTheRestOfThePageStays(t *testing.T) {
	const page = "# Page\n\n<!-- bench:figures begin -->\nold\n<!-- bench:figures end -->\n\nEnd\n<!-- bench:growth begin -->\n<!-- bench:growth end -->\n"
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	for range 2 { // writing again changes nothing
		if err := bench.WritePage(path, bench.FiguresBlock, "new\n\n"); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(strings.Replace(page, "old", "new", 1), string(got)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestAPageWithoutItsBlockIsLeftAlone(t *testing.T) {
	const begin, end = "<!-- bench:figures begin -->\n", "<!-- bench:figures end -->\n"
	for name, page := range map[string]string{
		"none": "# Page\n", "no end": begin, "two": begin + end + begin + end, "upside down": end + begin,
	} {
		path := filepath.Join(t.TempDir(), "page.md")
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := bench.WritePage(path, bench.FiguresBlock, "new"); err == nil {
			t.Errorf("%s: WritePage() has no error", name)
		}
		if err := bench.CheckPage(path, bench.FiguresBlock); err == nil {
			t.Errorf("%s: CheckPage() has no error", name)
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != page {
			t.Errorf("%s: the page is %q, %v, want it unchanged", name, got, err)
		}
	}
}

// The pages that `lab bench --write` is made for.
func TestOurOwnPagesHaveTheirBlocks(t *testing.T) {
	for block, page := range map[string]string{
		bench.FiguresBlock: "performance.md", bench.GrowthBlock: "performance.md",
		bench.RoomsBlock: "classroom.md", bench.EmbeddedRoomsBlock: "classroom.md",
	} {
		data, err := os.ReadFile(filepath.Join("../../../docs", page))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), page)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if err := bench.CheckPage(path, block); err != nil {
			t.Error(err)
		}
		if err := bench.WritePage(path, block, report().Page()); err != nil {
			t.Error(err)
		}
	}
}

func TestReportIsPrivateAndWhole(t *testing.T) {
	path := filepath.Join(t.TempDir(), "bench.json")
	if err := report().Write(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v, want mode 0600", path, info.Mode(), err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}
