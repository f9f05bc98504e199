package verdict

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

var update = flag.Bool("update", false, "write testdata/golden/*.txt from what is printed")

// hints gives one for everything, of the length of a real one.
func hints(check, cause string, layer int) string {
	return fmt.Sprintf("This is hint %d for `%s` of `%s`. It is a nudge and never the code; what it says stands in lab.yaml.", layer+1, cause, check)
}

func printed(r *Result) string {
	var out bytes.Buffer
	Print(&out, r, &course.Lab{Number: r.Lab, Title: "Make the world match the spec"}, hints)
	return out.String()
}

// Each result, testdata/golden/NAME.json, has what is printed of it beside it, NAME.txt.
func TestReportsMatchGolden(t *testing.T) {
	results, err := filepath.Glob("testdata/golden/*.json")
	if err != nil || len(results) == 0 {
		t.Fatal(results, err)
	}
	for _, file := range results {
		name := strings.TrimSuffix(filepath.Base(file), ".json")
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var r Result
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			got, golden := printed(&r), strings.TrimSuffix(file, ".json")+".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if diff := cmp.Diff(string(want), got); err != nil || diff != "" {
				t.Errorf("%v: the report changed (go test -update takes it over):\n%s", err, diff)
			}
		})
	}
}

func TestReportFitsOneScreen(t *testing.T) {
	long := strings.Repeat("word and ", 14)
	lines := []string{strings.Repeat(long, 3), long, long}
	evidence := []finding.Evidence{{Title: "A", Lines: lines}, {Title: "B", Lines: lines}, {Title: "C", Lines: lines}, {Title: "D", Lines: lines}}
	r := &Result{Lab: 4, Verdict: Fail}
	for i := range 40 {
		c := Check{ID: fmt.Sprintf("a-check-with-quite-a-long-name-%d", i), Title: long, Lab: 4, State: Passed}
		if i < 10 {
			c.State, c.Cause, c.Expected, c.Seen, c.Evidence = Failed, "other", strings.Repeat(long, 10), strings.Repeat(long+"\n", 20), evidence
		}
		r.Checks = append(r.Checks, c)
	}
	report := printed(r)
	if n := strings.Count(report, "\n"); n > 40 {
		t.Errorf("%d lines:\n%s", n, report)
	}
	for line := range strings.Lines(report) {
		if plain.Width(strings.TrimSuffix(line, "\n")) > 80 {
			t.Errorf("too wide: %s", line)
		}
	}
}
