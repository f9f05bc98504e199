package harness

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
)

func TestWhoIsNotAsked(t *testing.T) {
	late := ginkgo.SpecReport{SpecPriority: int(Late)}
	for name, tc := range map[string]struct {
		outlook outlook
		spec    ginkgo.SpecReport
		want    string
	}{
		"all is well":                           {outlook{}, ginkgo.SpecReport{}, ""},
		"what it requires failed":               {outlook{Blocked: "root", Failed: "other"}, ginkgo.SpecReport{}, "root"},
		"another failed beside it":              {outlook{Failed: "other"}, ginkgo.SpecReport{}, ""},
		"late, after another failed":            {outlook{Failed: "other"}, late, "other"},
		"late, and what it requires failed":     {outlook{Blocked: "root", Failed: "other"}, late, "root"},
		"everybody is asked in their own right": {outlook{}, late, ""},
	} {
		if got := unasked(tc.outlook, tc.spec); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// What failed is told to each check as it concerns that one: what it requires, and what has nothing to do with it.
func TestWhatFailedElsewhere(t *testing.T) {
	requires := map[string][]string{"pods-run": {"creates"}, "answers": {"creates", "pods-run"}, "repairs": {"creates"}}
	p := newProgress()
	p.fail("answers") // before pods-run, which explains it
	p.fail("repairs")
	for check, want := range map[string]outlook{
		"creates":  {},
		"pods-run": {Failed: "repairs"},
		"keeps":    {Failed: "answers"},
	} {
		if o := p.elsewhere(check, requires); o != want {
			t.Errorf("%s hears %+v, want %+v", check, o, want)
		}
	}
	p.fail("creates")
	if o := p.elsewhere("pods-run", requires); o.Blocked != "creates" {
		t.Errorf("pods-run is not blocked: %+v", o)
	}
}

// A check that is apart takes much of the machine, and nobody waits for it once the verdict is clear.
func TestWhoIsGivenUp(t *testing.T) {
	t.Cleanup(func() { suite.apart = nil })
	other, root := outlook{Failed: "other"}, outlook{Blocked: "root", Failed: "other"}
	for _, apart := range []*stage{nil, {}} {
		suite.apart = apart
		want := map[bool]string{false: "", true: "other"}[apart != nil]
		if got := other.inVain(); got != want {
			t.Errorf("apart %v, another failed: %q, want %q", apart != nil, got, want)
		}
		if got := root.inVain(); got != "root" {
			t.Errorf("apart %v, what it requires failed: %q", apart != nil, got)
		}
	}
}
