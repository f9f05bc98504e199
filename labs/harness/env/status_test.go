package env

import (
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
)

func TestWhichChecksNeedNotBegin(t *testing.T) {
	late := ginkgo.SpecReport{SpecPriority: int(Last)}
	for name, tc := range map[string]struct {
		status Status
		spec   ginkgo.SpecReport
		want   string
	}{
		"all is well":                           {Status{}, ginkgo.SpecReport{}, ""},
		"what it requires failed":               {Status{Blocked: "root", Failed: "other"}, ginkgo.SpecReport{}, "root"},
		"another failed beside it":              {Status{Failed: "other"}, ginkgo.SpecReport{}, ""},
		"late, after another failed":            {Status{Failed: "other"}, late, "other"},
		"late, and what it requires failed":     {Status{Blocked: "root", Failed: "other"}, late, "root"},
		"everybody is asked in their own right": {Status{}, late, ""},
	} {
		if got := unasked(tc.status, tc.spec); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// Some checks take much of the machine, and nobody waits for them once the verdict is clear.
func TestWhichChecksAreGivenUp(t *testing.T) {
	other, root := Status{Failed: "other"}, Status{Blocked: "root", Failed: "other"}
	for priority, want := range map[ginkgo.SpecPriority]string{First: "", 0: "", Long: "other", Last: "other"} {
		spec := ginkgo.SpecReport{SpecPriority: int(priority)}
		if got := other.inVain(spec); got != want {
			t.Errorf("priority %d, another failed: %q, want %q", priority, got, want)
		}
		if got := root.inVain(spec); got != "root" {
			t.Errorf("priority %d, what it requires failed: %q", priority, got)
		}
	}
}

// processesOf are two Ginkgo processes of one run.
func processesOf(t *testing.T) (one, other *progress) {
	t.Helper()
	artifacts := t.TempDir()
	return newProgress(artifacts), newProgress(artifacts)
}

func told(t *testing.T, p *progress, what, id string) {
	t.Helper()
	if err := p.publish(what, id); err != nil {
		t.Fatal(err)
	}
}

func updated(t *testing.T, p *progress) *progress {
	t.Helper()
	if err := p.update(); err != nil {
		t.Fatal(err)
	}
	return p
}

// What failed is told to each check as it concerns that one: what it requires, and what has nothing to do with it.
func TestEachCheckHearsWhatFailedInAnotherProcess(t *testing.T) {
	requires := map[string][]string{"pods-run": {"creates"}, "answers": {"creates", "pods-run"}, "repairs": {"creates"}}
	one, other := processesOf(t)
	told(t, one, failed, "answers") // before pods-run, which explains it
	told(t, one, failed, "repairs")
	updated(t, other)
	for check, want := range map[string]Status{
		"creates":  {},
		"pods-run": {Failed: "repairs"},
		"keeps":    {Failed: "answers"},
	} {
		if s := other.elsewhere(check, requires); s != want {
			t.Errorf("%s hears %+v, want %+v", check, s, want)
		}
	}
	told(t, one, failed, "creates")
	if s := updated(t, other).elsewhere("pods-run", requires); s.Blocked != "creates" {
		t.Errorf("pods-run is not blocked: %+v", s)
	}
}

// A check waits with its failure for those that explain it, and for no longer than they run.
func TestEachCheckHearsWhatRunsInAnotherProcess(t *testing.T) {
	requires := map[string][]string{"answers": {"pods-run", "creates"}}
	one, other := processesOf(t)
	explained := func() bool { return updated(t, other).elsewhere("answers", requires).Explained }
	told(t, one, begun, "follows-size")
	if explained() {
		t.Error("a check is waited for that nobody requires")
	}
	told(t, one, begun, "pods-run")
	if !explained() {
		t.Error("a required check runs, and nobody waits for it")
	}
	told(t, one, ended, "pods-run")
	if explained() {
		t.Error("a check that has ended is waited for")
	}
}

// A line is read when it is whole, and once.
func TestAHalfWrittenLineComesLater(t *testing.T) {
	one, other := processesOf(t)
	told(t, one, failed, "creates")
	updated(t, other)
	f, err := os.OpenFile(one.path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range []string{"failed ans", "wers\n"} {
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		updated(t, other)
	}
	if len(other.failed) != 2 || other.failed[1] != "answers" {
		t.Errorf("failed are %q", other.failed)
	}
}

// Nobody may take a file that cannot be read for good news.
func TestAStatusThatCannotBeReadIsTheMachinesFault(t *testing.T) {
	before := current.progress
	t.Cleanup(func() { current.progress = before })
	current.progress = newProgress(t.TempDir())
	if err := os.Mkdir(current.progress.path, 0o700); err != nil {
		t.Fatal(err)
	}
	if s := status(); s.Gone == nil || s.Gone.Cause != "machine" {
		t.Errorf("the check hears %+v", s)
	}
}
