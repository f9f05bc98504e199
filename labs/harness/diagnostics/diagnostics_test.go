package diagnostics_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubefake "k8s.io/client-go/kubernetes/fake"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
)

// here is the namespace of the check that failed, there the namespace of a check that runs at the same time.
const here, there = "lab-pods-run-x7k2p", "lab-follows-size-abcde"

var (
	gvk     = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}
	nothing = finding.New("other", "something", "nothing")
)

func snapshot() *diagnostics.Snapshot {
	return &diagnostics.Snapshot{
		Namespaces: []string{here}, Quota: "pods", Workspace: workspace, User: "system:serviceaccount:lab-system:manager",
	}
}

// in puts objects into a cluster and has the snapshot look at it.
func in(t *testing.T, s *diagnostics.Snapshot, objects ...client.Object) *diagnostics.Snapshot {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	scheme.AddKnownTypeWithName(gvk, &unstructured.Unstructured{})
	scheme.AddKnownTypeWithName(gvk.GroupVersion().WithKind("MemcachedList"), &unstructured.UnstructuredList{})
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithReturnManagedFields().Build()
	s.Read(t.Context(), c, kubefake.NewClientset(), gvk)
	return s
}

func memcached(namespace, name string) *unstructured.Unstructured {
	m := &unstructured.Unstructured{}
	m.SetGroupVersionKind(gvk)
	m.SetNamespace(namespace)
	m.SetName(name)
	m.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "somebody", Operation: "Update", APIVersion: gvk.GroupVersion().String(), FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1("{}"),
	}})
	return m
}

func pod(name string, status corev1.ContainerStatus) *corev1.Pod {
	status.Name = "memcached"
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: name},
		Status:     corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
	}
}

func waiting(reason, message string) corev1.ContainerStatus {
	return corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}
}

func event(namespace, name, severity, reason, kind, regarding, note string, at int) *eventsv1.Event {
	return &eventsv1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, CreationTimestamp: metav1.Unix(int64(at), 0)}, Type: severity, Reason: reason, Note: note,
		Regarding: corev1.ObjectReference{Kind: kind, Name: regarding},
	}
}

func request(verb, resource, namespace string, status int, message string) apiproxy.Request {
	return apiproxy.Request{Verb: verb, Group: "apps", Resource: resource, Namespace: namespace, Status: status, Message: message}
}

func evidence(title string, lines ...string) finding.Evidence {
	return finding.Evidence{Title: title, Lines: lines}
}

func requireEvidence(t *testing.T, s *diagnostics.Snapshot, f *finding.Finding, want ...finding.Evidence) {
	t.Helper()
	if diff := cmp.Diff(want, s.Explain(f)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	const noRight = `deployments.apps is forbidden: User "system:serviceaccount:lab-system:manager" cannot create resource "deployments" in API group "apps"`
	s := snapshot()
	s.Requests = []apiproxy.Request{
		request("list", "replicasets", "", 403, `replicasets.apps is forbidden: User "somebody" cannot list resource "replicasets"`),
		request("create", "deployments", here, 403, noRight),
		request("create", "deployments", there, 403, noRight),   // of another check
		request("create", "deployments", here, 201, ""),         // no refusal
		request("get", "deployments", here, 404, "not found"),   // how an operator finds out
		request("update", "deployments", here, 409, "modified"), // tried again
		request("watch", "deployments", "", 410, "too old"),     // watched again
		request("create", "deployments", here, 403, noRight),
		request("create", "deployments", "elsewhere", 422, "spec.selector: Required value"),
	}
	s.Log = `E1121 09:31:31.1 1 reflector.go:200] "Failed to watch" err="` + strings.ReplaceAll(noRight, `"`, `\"`) + `"` + "\n"
	requireEvidence(t, s, nothing, evidence("The API server refused your manager",
		"create deployments.apps: 422: spec.selector: Required value",
		"create deployments.apps: 403 (2 times): it has no right to do that",
		"list replicasets.apps in all namespaces: 403: somebody has no right to do that, and your manager asks in its name"))
}

func TestFindingIsNotRepeated(t *testing.T) {
	s := snapshot()
	s.Requests = []apiproxy.Request{request("create", "deployments", here, 422, "spec.selector: Required value")}
	for _, seen := range []string{s.Requests[0].String(), s.Requests[0].Kind() + ": not taken"} {
		requireEvidence(t, s, finding.New("rejected", "a Deployment", "none; the API server did not take it: %s", seen))
	}
	s = snapshot()
	s.Log = "panic: the kettle is empty\n\ngoroutine 1 [running]:\nmain.main()\n\t/home/me/workspace/cmd/main.go:12 +0x1\n"
	const panicked = "the kettle is empty, at cmd/main.go:12"
	requireEvidence(t, s, nothing, evidence("Your code panicked", panicked))
	requireEvidence(t, s, finding.New("manager-exited", "it runs", "it panicked: %s", panicked))
}

func TestContainersInTrouble(t *testing.T) {
	crashing := corev1.ContainerStatus{
		RestartCount: 2, State: waiting("CrashLoopBackOff", "back-off 20s restarting failed container").State,
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 64}},
	}
	s := in(t, snapshot(),
		pod("a", crashing), pod("b", corev1.ContainerStatus{State: crashing.LastTerminationState}), // not started again yet
		pod("c", waiting("ErrImageNeverPull", "image is not present")),
		pod("d", waiting("ContainerCreating", "")),
		pod("e", corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}),
	)
	requireEvidence(t, s, nothing, evidence("The Pods",
		"container memcached: it ended with exit code 64 (2 times): fake logs",
		"container memcached: ErrImageNeverPull, image is not present: fake logs"))
}

// A check without Pods has a quota of 0, and Kubernetes keeps writing warnings about it.
func TestWarnings(t *testing.T) {
	s := in(t, snapshot(),
		event(here, "1", "Warning", "FailedCreate", "ReplicaSet", "x-1", `pods "x-1" is forbidden: exceeded quota: pods, requested: pods=1`, 1),
		event(here, "2", "Normal", "Pulled", "Pod", "mine-1", "image present", 2),
		event(here, "4", "Warning", "Unhealthy", "Pod", "mine-2", "readiness probe failed: later", 4),
		event(here, "3", "Warning", "Unhealthy", "Pod", "mine-1", "readiness probe failed: earlier", 3),
		event(there, "5", "Warning", "Unhealthy", "Pod", "other", "of another check", 5),
	)
	requireEvidence(t, s, nothing, evidence("The events", "Warning Unhealthy on Pod (2 times): readiness probe failed: later"))
}

// Without other evidence, the report has the manager's writes and the end of its log.
func TestQuietManagerIsEvidence(t *testing.T) {
	create, update := request("create", "deployments", here, 201, ""), request("update", "deployments", here, 200, "")
	s := snapshot()
	s.Log = "starting\nworking for " + there + "\n"
	s.Requests = []apiproxy.Request{request("create", "deployments", there, 201, ""), request("list", "deployments", here, 200, "")}
	requireEvidence(t, s, nothing, evidence("Your manager wrote", "nothing in the namespace of this check"),
		evidence("Your manager's log ends with", "starting"))
	s.Requests = append(s.Requests, create, update, update)
	requireEvidence(t, s, nothing, evidence("Your manager wrote", "create deployments.apps, update deployments.apps (2 times)"),
		evidence("Your manager's log ends with", "starting"))
}

func TestTokensAreRedacted(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
	chatty := memcached(here, "mine")
	chatty.SetAnnotations(map[string]string{"note": "Bearer " + token})
	s := in(t, snapshot(), chatty, event(here, "1", "Warning", "Failed", "Memcached", "mine", "with "+token, 1))
	s.Log = "error: 401 with Authorization: Bearer " + token + "\n"
	if all := s.Explain(nothing); len(all) != 2 || strings.Contains(cmp.Diff(nil, all), "eyJ") {
		t.Errorf("evidence: %v", all)
	}
	dir := filepath.Join(t.TempDir(), "pods-run")
	s.Keep(dir)
	data, err := os.ReadFile(filepath.Join(dir, "objects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if text := string(data); strings.Contains(text, "eyJ") || !strings.Contains(text, "kind: Memcached") || strings.Contains(text, "managedFields") {
		t.Error(text)
	}
}
