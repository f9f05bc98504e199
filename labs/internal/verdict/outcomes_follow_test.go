package verdict

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestOutcomesAreReadByWholeLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outcomes.jsonl")
	var heard []string
	offset := int64(0)
	for _, more := range []string{"", `{"LeafNodeText":"a"}` + "\n" + `{"LeafNo`, `deText":"b"}` + "\nno JSON\n", "", `{"LeafNodeText":"c"}` + "\n"} {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(more); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		offset += newOutcomes(path, offset, func(s types.SpecReport) { heard = append(heard, s.LeafNodeText) })
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, heard); diff != "" {
		t.Error(diff)
	}
}

func TestWhatFailedLastTimeAndHoldsNowIsFixed(t *testing.T) {
	told := make(chan Outcome)
	r := &run{
		Judge:     &Judge{OnOutcome: func(o Outcome) { told <- o }},
		artifacts: t.TempDir(), cluster: &clusters.Cluster{RealPods: true}, failing: []string{"fixed", "still-fails"},
	}
	var lines, got strings.Builder
	lab := &course.Lab{Number: 4}
	for _, c := range []struct{ id, state string }{{"fixed", "passed"}, {"held", "passed"}, {"still-fails", "failed"}, {"last", "passed"}} {
		lab.Checks = append(lab.Checks, course.Check{ID: c.id})
		fmt.Fprintf(&lines, `{"LeafNodeType":"It","LeafNodeLabels":[%q],"State":%q}`+"\n", suite.CheckLabel+c.id, c.state)
	}
	r.wanted = []*course.Lab{lab}
	if err := os.WriteFile(filepath.Join(r.artifacts, suite.OutcomesFile), []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	end := r.listen(t.Context(), []int{4})
	for range lab.Checks {
		o := <-told
		fmt.Fprintf(&got, "%s %v; ", o.ID, o.Fixed)
	}
	end()
	if want := "fixed true; held false; still-fails false; last false; "; got.String() != want {
		t.Errorf("told %q, want %q", &got, want)
	}
}
