package trace

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// Five processes add what a manager sent, which may name things with a kilobyte each that JSON writes as six.
func TestRequestsDoNotOutgrowTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("\x01", 1<<10)
	var requests []apiproxy.Request
	for i := range 8192 {
		requests = append(requests, apiproxy.Request{Verb: "patch", Group: long, Resource: long, Namespace: long, Name: fmt.Sprint(i, long), Status: 403, Message: long})
	}
	for range 5 {
		w := Join(path)
		w.Add(requests, nil)
		w.see(Observation{Object: deployment("default", 3)})
		w.Close()
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > sizeLimit+lineLimit {
		t.Errorf("the file has %d MiB", info.Size()>>20)
	}
}

// A manager can make Memcacheds beside those of a check, and be refused what belongs to none of them: each would be in the
// timeline of each, and be compared with each.
func TestTimelinesHaveALimit(t *testing.T) {
	const namespace, many = "lab-check-abcde", 2500
	start := time.Unix(100, 0)
	r := &Recording{}
	for i := range many {
		m := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached"}}
		m.SetNamespace(namespace)
		m.SetName(fmt.Sprintf("mine-%d-", i))
		r.Observations = append(r.Observations, Observation{At: start.Add(time.Duration(i)), Object: m})
		r.Requests = append(r.Requests, Request{Times: 1, Request: apiproxy.Request{
			Time: start.Add(time.Duration(many + i)), Status: 403, Verb: "delete", Resource: "endpoints", Namespace: namespace, Name: fmt.Sprint("x", i),
		}})
	}
	timelines := r.Timelines()
	actions, omitted := 0, 0
	for _, s := range timelines {
		actions, omitted = actions+len(s.Actions), omitted+s.Omitted
	}
	if len(timelines) != inNamespace || actions > ofAll || omitted < inNamespace*(many-ofOne) {
		t.Errorf("%d timelines with %d actions, and %d left out", len(timelines), actions, omitted)
	}
}

// The types of a Memcached are the learner's. Eight bytes of a list of maps are three hundred in memory.
func TestARecordingHoldsNothingOfALearnersOwnTypes(t *testing.T) {
	many := make([]any, 20_000)
	for i := range many {
		many[i] = map[string]any{"a": int64(0)}
	}
	condition := map[string]any{"type": "Available", "status": "True", "reason": "r", "message": "m", "lastTransitionTime": "2026-01-01T00:00:00Z", "more": many}
	o := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": map[string]any{"name": "tea"},
		"spec":   map[string]any{"size": int64(3), "more": many},
		"status": map[string]any{"conditions": []any{condition}, "more": many},
	}}
	data, err := json.Marshal(shorten(o))
	if err != nil || len(data) > 1000 {
		t.Fatalf("%d bytes, %v", len(data), err)
	}
	m, ok := decode(data).(*unstructured.Unstructured)
	if !ok || sizeOf(m) != 3 || Available(m).Status != metav1.ConditionTrue || m.GetName() != "tea" {
		t.Errorf("%s", data)
	}
}
