package trace

import (
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/yaml"
)

// parse reads an object from YAML.
func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	json, err := yaml.YAMLToJSON([]byte(text))
	must(t, err)
	must(t, o.UnmarshalJSON(json))
	return o
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const (
	memcached  = "{kind: Memcached, metadata: {name: tea, uid: m, generation: 1, managedFields: [{manager: kubectl-create, fieldsV1: {'f:spec': {'f:size': {}}}}]}, spec: {size: 3}}"
	deployment = `
kind: Deployment
metadata:
  {name: tea, uid: d, ownerReferences: [{kind: Memcached, name: tea, uid: m, controller: true}], managedFields: [
    {manager: kube-controller-manager, fieldsV1: {'f:status': {'f:availableReplicas': {}}}},
    {manager: kubectl-set, fieldsV1: {'f:spec': {'f:template': {'f:spec': {'f:containers': {'k:{"name":"c"}': {'f:image': {}}}}}}}},
    {manager: operator, fieldsV1: {'f:metadata': {'f:labels': {'f:app': {}}}, 'f:spec': {'f:replicas': {}, 'f:template': {}}}}]}
spec: {replicas: 3, template: {spec: {containers: [{name: c, image: one}]}}}
status: {availableReplicas: 2}`
	replicaSet = "{kind: ReplicaSet, metadata: {name: tea-1, uid: r, ownerReferences: [{kind: Deployment, name: tea, uid: d, controller: true}], managedFields: [{manager: kube-controller-manager, fieldsV1: {'f:spec': {'f:replicas': {}}}}]}, spec: {replicas: 1}}"
	pod        = "{kind: Pod, metadata: {name: tea-1-a, uid: p, ownerReferences: [{kind: ReplicaSet, uid: r, controller: true}], managedFields: [{manager: kube-controller-manager, fieldsV1: {'f:spec': {}}}, {manager: kubelet, fieldsV1: {'f:status': {}}}]}, spec: {}, status: {}}"
)

// observed is what a tracker says of the last of some objects; a text that begins with - is a deletion.
func observed(t *testing.T, objects ...string) (text string) {
	t.Helper()
	tracker := NewTracker(func(fieldManager string) string { return fieldManager })
	for _, object := range objects {
		yaml, deleted := strings.CutPrefix(object, "-")
		text = told(tracker.Observe(Observation{Object: parse(t, yaml), Deleted: deleted}))
	}
	return text
}

func TestActionsOfAChange(t *testing.T) {
	with := func(o, before, now string) string {
		if !strings.Contains(o, before) {
			t.Fatalf("no %s in %s", before, o)
		}
		return strings.Replace(o, before, now, 1)
	}
	dying := with(memcached, "uid: m,", "uid: m, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: [example.com/f],")
	held := with(memcached, "uid: m,", "uid: m, finalizers: [example.com/f],")
	reported := with(memcached, "spec: {size: 3}", "spec: {size: 3}, status: {conditions: [{type: Degraded, status: 'False'}, {type: Available, status: 'True', message: all}]}")
	event := "{kind: Event, metadata: {uid: e, managedFields: [{manager: operator, fieldsV1: {'f:note': {}}}]}, note: Created it, regarding: {kind: Memcached, name: tea}, deprecatedCount: 1}"
	for _, test := range []struct {
		name, want string
		objects    []string
	}{
		{"kubectl is you", "you created Memcached tea of size 3", []string{memcached}},
		{"the same again", "", []string{memcached, memcached}},
		{"a field of the spec", "you changed Memcached tea: size 4", []string{memcached, with(memcached, "size: 3", "size: 4")}},
		{"a finalizer", "somebody changed Memcached tea: finalizers", []string{memcached, held}},
		{"a finalizer keeps it", "you deleted Memcached tea: it waits for example.com/f", []string{held, dying}},
		{"a shorter grace period", "", []string{dying, with(dying, "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z")}},
		{"the finalizer goes", "kube-apiserver removed Memcached tea: it has no finalizer left", []string{dying, "-" + dying}},
		{"conditions", "somebody reported Memcached tea: Available=True, Degraded=False", []string{memcached, reported}},
		{"replicas", "operator scaled Deployment tea from 3 to 5", []string{deployment, with(deployment, "replicas: 3", "replicas: 5")}},
		{"the writer of a field", "you changed Deployment tea: image two", []string{deployment, with(deployment, "image: one", "image: two")}},
		{"a label", "operator changed Deployment tea: the label app", []string{deployment, with(deployment, "uid: d,", "uid: d, labels: {app: tea},")}},
		{"a new owner", "operator changed Deployment tea: ownerReferences", []string{with(deployment, "controller: true", "controller: false"), deployment}},
		{"all Pods are there", "deployment-controller reported Deployment tea: 3 of 3 replicas available", []string{deployment, with(deployment, "availableReplicas: 2", "availableReplicas: 3")}},
		{"the owner's controller", "deployment-controller created ReplicaSet tea-1", []string{replicaSet}},
		{"a node", "kube-scheduler found a node for Pod tea-1-a", []string{pod, with(pod, "spec: {}", "spec: {nodeName: one}")}},
		{"a Pod runs", "kubelet started Pod tea-1-a", []string{pod, with(pod, "status: {}", "status: {conditions: [{type: Ready, status: 'True'}]}")}},
		{"a Pod cannot run", "kubelet could not start Pod tea-1-a: ErrImagePull",
			[]string{pod, with(pod, "status: {}", "status: {containerStatuses: [{name: c, state: {waiting: {reason: ErrImagePull}}}]}")}},
		{"one Pod too many", "replicaset-controller deleted Pod tea-1-a", []string{with(replicaSet, "replicas: 1", "replicas: 0"), pod, "-" + pod}},
		{"a Pod that is wanted", "you deleted Pod tea-1-a", []string{replicaSet, pod, "-" + pod}},
		{"the owner is gone", "garbage-collector deleted Pod tea-1-a: the ReplicaSet is gone", []string{replicaSet, pod, "-" + replicaSet, "-" + pod}},
		{"an event", `operator wrote event "Created it"`, []string{event}},
		{"an event again", `operator repeated event "Created it"`, []string{event, with(event, "Count: 1", "Count: 2")}},
	} {
		if got := observed(t, test.objects...); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestObservationsAreSortedByVersion(t *testing.T) {
	version := func(v string, at int64) Observation {
		o := &unstructured.Unstructured{Object: map[string]any{}}
		o.SetResourceVersion(v)
		return Observation{At: time.Unix(at, 0), Object: o}
	}
	got := inOrder([]Observation{version("1000", 1), version("999", 2)})
	if got[0].Object.GetResourceVersion() != "999" || got[0].At.After(got[1].At) {
		t.Errorf("999 stands behind 1000: %v", got)
	}
}

func TestWatchRecordsNamespacesOfChecks(t *testing.T) {
	path := filepath.Join(t.TempDir(), File)
	synctest.Test(t, func(t *testing.T) {
		c := fake.NewClientBuilder().Build()
		w := Watch(t.Context(), c, path, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}, "labs.test")
		synctest.Wait()
		for _, namespace := range []string{"kube-system", ns} {
			o := parse(t, memcached)
			o.SetAPIVersion("cache.example.com/v1alpha1")
			o.SetNamespace(namespace)
			must(t, c.Create(t.Context(), o))
		}
		time.Sleep(2 * batchPeriod)
		synctest.Wait()
		w.Close()
	})
	if actions, err := ByCheck(path); err != nil || len(actions) != 1 || len(actions["follows-size"]) != 1 {
		t.Errorf("%+v, %v", actions, err)
	}
}
