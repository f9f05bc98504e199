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
	sights := recorded(t)
	for _, batch := range batches(sights) {
		p.actions(sights[0].At, m.Learn(batch))
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
func recorded(t *testing.T) []trace.Sight {
	t.Helper()
	recording, err := trace.ReadFile("testdata/seen.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return recording.Sights
}

// batches puts sights together as follow does.
func batches(sights []trace.Sight) [][]trace.Sight {
	var result [][]trace.Sight
	for _, s := range sights {
		if n := len(result); n > 0 && s.At.Sub(result[n-1][0].At) < settle {
			result[n-1] = append(result[n-1], s)
			continue
		}
		result = append(result, []trace.Sight{s})
	}
	return result
}
