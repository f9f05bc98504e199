package trace

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestObservationsAreInTheOrderOfTheAPIServer(t *testing.T) {
	start := time.Now()
	pod := func(revision string) client.Object {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: revision}}
	}
	observations := []Observation{{At: start, Object: pod("1000")}, {At: start.Add(time.Second), Object: pod("999")}}
	InOrder(observations)
	if observations[0].Object.GetResourceVersion() != "999" {
		t.Error("999 stands behind 1000")
	}
	if observations[0].At.After(observations[1].At) {
		t.Errorf("the first was seen %v after the second", observations[0].At.Sub(observations[1].At))
	}
}

func TestDeedsThatDifferInNamesAreOne(t *testing.T) {
	created := func(name string) Action {
		return Action{Actor: "replicaset-controller", Verb: "created", Kind: "Pod", Name: name, Count: 1}
	}
	bound := Action{Actor: "kube-scheduler", Verb: "found a node for", Kind: "Pod", Name: "a", Count: 1}
	var got []string
	for _, d := range Together([]Action{created("a"), bound, created("b"), created("c")}) {
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
		"f:spec f:paused":     You,
		"f:status f:replicas": "deployment-controller",
		"f:spec f:strategy":   "somebody",
	} {
		if got := NewMemory(Programs).writer(deployment, "Deployment", strings.Fields(path)...); got != want {
			t.Errorf("writer of %s = %s, want %s", path, got, want)
		}
	}
}

func TestWhoRemoves(t *testing.T) {
	set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{UID: "set"}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "cache-1", UID: "pod", OwnerReferences: []metav1.OwnerReference{
		{Kind: "ReplicaSet", UID: "set", Controller: new(true)},
	}}}
	none := set.DeepCopy()
	none.Spec.Replicas = new(int32(0))
	dying := set.DeepCopy()
	dying.DeletionTimestamp = new(metav1.Now())
	tell := func(observations ...Observation) string {
		m := NewMemory(Programs)
		last := ""
		for _, s := range observations {
			for _, d := range m.Take(s) {
				last = d.Actor + " " + d.String()
			}
		}
		return last
	}
	for _, test := range []struct {
		name, want   string
		observations []Observation
	}{
		{"one Pod too many", "replicaset-controller removed Pod cache-1",
			[]Observation{{Object: none}, {Object: pod}, {Object: pod, Deleted: true}}},
		{"a Pod that is wanted", "you removed Pod cache-1",
			[]Observation{{Object: set}, {Object: pod}, {Object: pod, Deleted: true}}},
		{"its owner is gone", "garbage-collector removed Pod cache-1: the ReplicaSet is gone",
			[]Observation{{Object: set}, {Object: pod}, {Object: set, Deleted: true}, {Object: pod, Deleted: true}}},
		{"it waited for a finalizer", "kube-apiserver removed ReplicaSet: nothing holds it any more",
			[]Observation{{Object: set}, {Object: dying}, {Object: dying, Deleted: true}}},
		{"nobody owns it", "you removed ReplicaSet",
			[]Observation{{Object: set}, {Object: set, Deleted: true}}},
	} {
		if got := tell(test.observations...); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
