package demo

import (
	"bytes"
	"flag"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/trace"
)

var update = flag.Bool("update", false, "write testdata/told.txt anew")

// testdata/seen.jsonl is what the watches of one demo on a kind cluster delivered, shortened to the
// fields that the timeline reads. testdata/told.txt is the timeline of it.
func TestTheTimelineOfARecordedDemo(t *testing.T) {
	const golden = "testdata/told.txt"
	var told bytes.Buffer
	m, p := trace.NewMemory(trace.Programs), printer{&told}
	observations := recorded(t)
	for _, batch := range batches(observations) {
		p.actions(observations[0].At, m.Learn(batch))
	}
	if *update {
		if err := os.WriteFile(golden, told.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), told.String()); diff != "" {
		t.Errorf("the timeline differs (-%s +told):\n%s", golden, diff)
	}
	if left := leftovers(m); left != "" {
		t.Errorf("at its end: %s", left)
	}
}

// recorded reads testdata/seen.jsonl.
func recorded(t *testing.T) []trace.Observation {
	t.Helper()
	recording, err := trace.ReadFile("testdata/seen.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return recording.Observations
}

// batches puts observations together as follow does.
func batches(observations []trace.Observation) [][]trace.Observation {
	var result [][]trace.Observation
	for _, s := range observations {
		if n := len(result); n > 0 && s.At.Sub(result[n-1][0].At) < settle {
			result[n-1] = append(result[n-1], s)
			continue
		}
		result = append(result, []trace.Observation{s})
	}
	return result
}
