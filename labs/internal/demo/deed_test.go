package demo

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var update = flag.Bool("update", false, "write testdata/told.txt anew")

// testdata/seen.jsonl is what the watches of one demo on a kind cluster delivered, shortened to the
// fields that the story reads. testdata/told.txt is the story of it.
func TestTheStoryOfARecordedDemo(t *testing.T) {
	const golden = "testdata/told.txt"
	var told bytes.Buffer
	m, p := newMemory(), printer{&told}
	sights := recorded(t)
	for _, batch := range batches(sights) {
		p.tell(sights[0].at, m.learn(batch))
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
		t.Errorf("the story differs (-%s +told):\n%s", golden, diff)
	}
	if left := m.leftovers(); left != "" {
		t.Errorf("at its end: %s", left)
	}
}

// recorded reads testdata/seen.jsonl.
func recorded(t *testing.T) []sight {
	t.Helper()
	file, err := os.Open("testdata/seen.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var sights []sight
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var line struct {
			At      time.Time
			Deleted bool
			Object  json.RawMessage
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		sights = append(sights, sight{at: line.At, object: decode(t, line.Object), deleted: line.Deleted})
	}
	return sights
}

func decode(t *testing.T, data []byte) client.Object {
	t.Helper()
	var meta metav1.TypeMeta
	if err := json.Unmarshal(data, &meta); err != nil {
		t.Fatal(err)
	}
	var object client.Object
	switch meta.Kind {
	case "Memcached":
		object = &unstructured.Unstructured{}
	case "Deployment":
		object = &appsv1.Deployment{}
	case "ReplicaSet":
		object = &appsv1.ReplicaSet{}
	case "Pod":
		object = &corev1.Pod{}
	case "Event":
		object = &eventsv1.Event{}
	}
	if err := json.Unmarshal(data, object); err != nil {
		t.Fatal(err)
	}
	return object
}

// batches puts sights together as follow does.
func batches(sights []sight) [][]sight {
	var result [][]sight
	for _, s := range sights {
		if n := len(result); n > 0 && s.at.Sub(result[n-1][0].at) < settle {
			result[n-1] = append(result[n-1], s)
			continue
		}
		result = append(result, []sight{s})
	}
	return result
}

func TestSightsAreToldInTheOrderOfTheAPIServer(t *testing.T) {
	start := time.Now()
	pod := func(revision string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}}
	}
	sights := []sight{{at: start, object: pod("1000")}, {at: start.Add(time.Second), object: pod("999")}}
	inOrder(sights)
	if sights[0].object.GetResourceVersion() != "999" {
		t.Error("999 stands behind 1000")
	}
	if sights[0].at.After(sights[1].at) {
		t.Errorf("the first was seen %v after the second", sights[0].at.Sub(sights[1].at))
	}
}

func TestDeedsThatDifferInNamesAreOne(t *testing.T) {
	created := func(name string) deed {
		return deed{actor: "replicaset-controller", verb: "created", kind: "Pod", name: name, count: 1}
	}
	bound := deed{actor: "kube-scheduler", verb: "found a node for", kind: "Pod", name: "a", count: 1}
	var got []string
	for _, d := range together([]deed{created("a"), bound, created("b"), created("c")}) {
		got = append(got, d.String())
	}
	if diff := cmp.Diff([]string{"created 3 Pods", "found a node for Pod a"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheWriterIsWhoOwnsTheField(t *testing.T) {
	entry := func(manager, fields string) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, FieldsV1: metav1.NewFieldsV1(fields)}
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{
		{Manager: "without-fields"},
		entry("kube-controller-manager", `{"f:status":{"f:replicas":{}}}`),
		entry("memcached-operator", `{"f:spec":{"f:replicas":{}}}`),
		entry("kubectl-edit", `{"f:spec":{"f:paused":{}}}`),
	}}}
	for path, want := range map[string]string{
		"f:spec f:replicas":   "memcached-operator",
		"f:spec f:paused":     you,
		"f:status f:replicas": "deployment-controller",
		"f:spec f:strategy":   "somebody",
	} {
		if got := writer(deployment, "Deployment", strings.Fields(path)...); got != want {
			t.Errorf("writer of %s = %s, want %s", path, got, want)
		}
	}
}

func TestWhoRemoves(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "set"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cache-1", UID: "pod", OwnerReferences: []metav1.OwnerReference{
		{Kind: "ReplicaSet", UID: "set", Controller: new(true)},
	}}}
	tell := func(sights ...sight) string {
		m := newMemory()
		last := ""
		for _, s := range sights {
			for _, d := range m.take(s) {
				last = d.actor + " " + d.String()
			}
		}
		return last
	}
	for _, test := range []struct {
		name, want string
		sights     []sight
	}{
		{"one Pod too many", "replicaset-controller removed Pod cache-1",
			[]sight{{object: set}, {object: pod}, {object: pod, deleted: true}}},
		{"its owner is gone", "garbage-collector removed Pod cache-1: the ReplicaSet is gone",
			[]sight{{object: set}, {object: pod}, {object: set, deleted: true}, {object: pod, deleted: true}}},
		{"nobody owns it", "you removed ReplicaSet",
			[]sight{{object: set}, {object: set, deleted: true}}},
	} {
		if got := tell(test.sights...); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
