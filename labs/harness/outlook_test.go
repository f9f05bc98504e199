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
