package demo

import (
	"bytes"
	"flag"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/harness/registry"
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

// The operator looks again every few seconds, which is no news.
func TestWhatTheRegistryHearsAgainIsNotToldAgain(t *testing.T) {
	w := &world{heard: make(chan registry.Request, 1)}
	put := registry.Request{Method: "PUT", Status: 204, Entry: registry.Entry{Name: "cache", Size: 3}}
	var told []string
	for _, q := range []registry.Request{put, put, {Method: "DELETE", Status: 503}, {Method: "DELETE", Status: 503}, {Method: "DELETE", Status: 204}} {
		w.hear(q)
		w.hear(q) // more than anybody has told yet does not hold up the registry
		for _, a := range w.asked(<-w.heard) {
			told = append(told, a.Actor+" "+a.String())
		}
	}
	want := []string{
		"memcached-operator sent PUT to the registry: cache, size 3 (answer 204)",
		"memcached-operator sent DELETE to the registry (answer 503)",
		"memcached-operator sent DELETE to the registry (answer 204)",
	}
	if diff := cmp.Diff(want, told); diff != "" {
		t.Error(diff)
	}
}

func TestTheFinalizerIsToldBeforeTheRequestThatItIsThereFor(t *testing.T) {
	at := func(ms int) time.Time { return time.Time{}.Add(time.Duration(ms) * time.Millisecond) }
	seen := []trace.Action{{At: at(1), Verb: "created"}, {At: at(9), Verb: trace.AddedFinalizer}, {At: at(12), Verb: "reported"}}
	var verbs []string
	for _, a := range together(seen, []trace.Action{{At: at(7), Verb: "sent"}}) {
		verbs = append(verbs, a.Verb)
	}
	if diff := cmp.Diff([]string{"created", trace.AddedFinalizer, "sent", "reported"}, verbs); diff != "" {
		t.Error(diff)
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
