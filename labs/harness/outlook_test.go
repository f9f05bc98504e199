package harness

import (
	"testing"

	"github.com/onsi/ginkgo/v2"
)

func TestWhoIsNotAsked(t *testing.T) {
	serial := ginkgo.SpecReport{IsSerial: true}
	late := ginkgo.SpecReport{IsSerial: true, SpecPriority: int(Latest)}
	for name, tc := range map[string]struct {
		outlook outlook
		spec    ginkgo.SpecReport
		before  string
		want    string
	}{
		"all is well":                           {outlook{}, serial, "", ""},
		"what it requires failed":               {outlook{Blocked: "root", Failed: "other"}, ginkgo.SpecReport{}, "", "root"},
		"another failed beside it":              {outlook{Failed: "other"}, ginkgo.SpecReport{}, "", ""},
		"serial, another failed before":         {outlook{Failed: "other"}, serial, "other", "other"},
		"serial, after a serial one failed":     {outlook{Failed: "serial"}, serial, "", ""},
		"late, after a serial one failed":       {outlook{Failed: "serial"}, late, "", "serial"},
		"late, and what it requires failed":     {outlook{Blocked: "root", Failed: "serial"}, late, "", "root"},
		"everybody is asked in their own right": {outlook{}, late, "", ""},
	} {
		if got := inVain(tc.outlook, tc.spec, &tc.before); got != tc.want {
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
