package diagnostics_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
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

// here is the namespace of the check that failed, there that of one that runs beside it.
const here, there = "lab-pods-run-x7k2p", "lab-follows-size-abcde"

var (
	gvk     = schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}
	nothing = finding.New("other", "something", "nothing")
)

func snapshot() *diagnostics.Snapshot {
	return &diagnostics.Snapshot{
		Namespaces: []string{here}, CheckNamespaces: regexp.MustCompile(`\blab-[a-z0-9-]+-[a-z0-9]{5}\b`),
		Quota: "pods", Workspace: "/home/me/workspace", Manager: true, User: "system:serviceaccount:lab-system:manager",
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

func requireEvidence(t *testing.T, s *diagnostics.Snapshot, f *finding.Finding, want ...finding.Evidence) {
	t.Helper()
	if diff := cmp.Diff(want, s.Explain(f)); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsAreCounted(t *testing.T) {
	const noRight = `deployments.apps is forbidden: User "system:serviceaccount:lab-system:manager" cannot create resource "deployments" in API group "apps" in the namespace "` + here + `"`
	s := snapshot()
	s.Requests = []apiproxy.Request{
		request("list", "replicasets", "", 403, `replicasets.apps is forbidden: User "somebody" cannot list resource "replicasets" in API group "apps" at the cluster scope`),
		request("create", "deployments", here, 403, noRight),
		request("create", "deployments", there, 403, noRight),   // of another check
		request("create", "deployments", here, 201, ""),         // no refusal
		request("get", "deployments", here, 404, "not found"),   // how an operator finds out
		request("update", "deployments", here, 409, "modified"), // once is usual
		request("watch", "deployments", "", 410, "too old"),     // so is that
		request("patch", "deployments", here, 409, "modified"),
		request("patch", "deployments", here, 409, "modified"),
		request("patch", "deployments", here, 409, "modified"),
		request("create", "deployments", here, 403, noRight),
		request("create", "deployments", "elsewhere", 422, "spec.selector: Required value"),
	}
	s.Log = "2026-11-21T09:31:31Z\tERROR\tReconciler error\t{\"namespace\": \"" + here + "\", \"error\": \"create: " + strings.ReplaceAll(noRight, `"`, `\"`) + "\"}\n"
	s.Log += `E1121 09:31:31.1 1 reflector.go:200] "Failed to watch" err="` + strings.ReplaceAll(noRight, `"`, `\"`) + `"` + "\n"
	requireEvidence(t, s, nothing, finding.Evidence{Title: "The API server refused your manager", Lines: []string{
		"create deployments.apps: 422, spec.selector: Required value",
		"create deployments.apps (2 times): 403, it has no right to do that",
		"patch deployments.apps (3 times): 409, modified",
	}})
	s.Requests, s.Log = s.Requests[:1], ""
	requireEvidence(t, s, nothing, finding.Evidence{Title: "The API server refused your manager", Lines: []string{
		"list replicasets.apps in all namespaces: 403, somebody has no right to do that, and your manager asks in its name",
	}})
}

func TestFindingIsNotRepeated(t *testing.T) {
	s := snapshot()
	s.Requests = []apiproxy.Request{request("create", "deployments", here, 422, "spec.selector: Required value")}
	s.Log = "error: create Deployment: spec.selector: Required value in " + here + "\n"
	for _, seen := range []string{s.Requests[0].String(), s.Requests[0].Kind() + ": not taken"} {
		for _, e := range s.Explain(finding.New("rejected", "a Deployment", "none; the API server did not take it: %s", seen)) {
			if strings.Contains(strings.Join(e.Lines, " "), "selector") {
				t.Errorf("%s: %q, and so did the finding", e.Title, e.Lines)
			}
		}
	}
}

func TestPanicComesFirst(t *testing.T) {
	s := snapshot()
	s.Gone = true
	s.Log = "panic: the kettle is empty\n\ngoroutine 1 [running]:\nmain.main()\n\t/home/me/workspace/cmd/main.go:12 +0x1\nexit status 2\n"
	requireEvidence(t, s, nothing, finding.Evidence{Title: "Your manager panicked", Lines: []string{"the kettle is empty", "at cmd/main.go:12"}})
	said := finding.New("manager-exited", "it runs", "it panicked: the kettle is empty, at cmd/main.go:12")
	for _, e := range s.Explain(said) {
		if e.Title == "Your manager panicked" {
			t.Errorf("the finding says it already, and so does the evidence: %q", e.Lines)
		}
	}
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
		event(here, "1", "Warning", "BackOff", "Pod", "a", "back-off restarting a", 1), // as the state says
		pod("e", corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}),
	)
	requireEvidence(t, s, nothing, finding.Evidence{Title: "The Pods", Lines: []string{
		"container memcached: it ended with exit code 64 (2 times)",
		"it said: fake logs",
		"container memcached: ErrImageNeverPull, image is not present",
	}})
}

// A check that works without Pods sets a quota of none, which Kubernetes complains about all the time.
func TestOwnQuotaIsLeftOut(t *testing.T) {
	condition := func(message string) *appsv1.Deployment {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: here, Name: "x"}, Status: appsv1.DeploymentStatus{
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: message}},
		}}
	}
	const own = `pods "x-1" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=0, limited: pods=0`
	s := in(t, snapshot(), condition(own), event(here, "1", "Warning", "FailedCreate", "ReplicaSet", "x-1", own, 1))
	s.Manager = false
	requireEvidence(t, s, nothing)
	const strange = `pods "x-1" is forbidden: violates PodSecurity "restricted"`
	s = in(t, snapshot(), condition(strange))
	requireEvidence(t, s, nothing, finding.Evidence{Title: "The Pods", Lines: []string{"Deployment x gets none: " + strange}})
}

func TestWarningsAreCounted(t *testing.T) {
	s := in(t, snapshot(),
		event(here, "2", "Normal", "Pulled", "Pod", "mine-1", "image present", 2),
		event(here, "4", "Warning", "Unhealthy", "Pod", "mine-2", "readiness probe failed: later", 4),
		event(here, "3", "Warning", "Unhealthy", "Pod", "mine-1", "readiness probe failed: earlier", 3),
		event(there, "5", "Warning", "Unhealthy", "Pod", "other", "of another check", 5),
	)
	requireEvidence(t, s, nothing, finding.Evidence{Title: "The events", Lines: []string{
		"Warning Unhealthy on Pod (2 times): readiness probe failed: later",
	}})
}

// With nothing else to go by, what the manager wrote is the evidence, and a log that never names the object.
func TestQuietManagerIsEvidence(t *testing.T) {
	wrote := func(what string) finding.Evidence {
		return finding.Evidence{Title: "Your manager wrote", Lines: []string{what}}
	}
	s := snapshot()
	s.Log = "starting\nworking for " + there + "\n"
	s.Requests = []apiproxy.Request{request("create", "deployments", there, 201, ""), request("list", "deployments", here, 200, "")}
	requireEvidence(t, s, nothing, wrote("nothing in the namespace of this check"), finding.Evidence{
		Title: "Your manager's log does not name this Memcached; it ends with", Lines: []string{"starting"},
	})
	s.Log += "saw mine\n"
	s.Requests = append(s.Requests, request("create", "deployments", here, 201, ""), request("update", "deployments", here, 200, ""), request("update", "deployments", here, 200, ""))
	done := wrote("create deployments.apps, update deployments.apps (2 times)")
	requireEvidence(t, in(t, s, memcached(here, "mine")), nothing, done, finding.Evidence{Title: "Your manager's log", Lines: []string{"saw mine"}})
	s.Log = ""
	requireEvidence(t, s, nothing, done, finding.Evidence{Title: "Your manager's log", Lines: []string{"is empty"}})
	s.Log = "saw mine\n"
	requireEvidence(t, in(t, s, pod("runs", corev1.ContainerStatus{})), nothing, done)
}

func TestTokensAreLeftOut(t *testing.T) {
	const token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJl"
	chatty := memcached(here, "mine")
	chatty.SetAnnotations(map[string]string{"note": "Bearer " + token})
	s := in(t, snapshot(), chatty, event(here, "1", "Warning", "Failed", "Memcached", "mine", "with "+token, 1))
	s.Log = "error: 401 with Authorization: Bearer " + token + "\n"
	s.Requests = []apiproxy.Request{request("create", "deployments", here, 422, "not "+token)}
	if evidence := s.Explain(nothing); len(evidence) != 3 || strings.Contains(cmp.Diff(nil, evidence), "eyJ") {
		t.Errorf("evidence: %v", evidence)
	}
	dir := filepath.Join(t.TempDir(), "pods-run")
	s.Keep(dir)
	files := map[string]string{
		"memcacheds.yaml": "kind: Memcached", "events.txt": "Warning Failed Memcached/mine", "refused.txt": "422 create deployments.apps",
		"manager.log": "error: 401 with Authorization: ",
	}
	for name, want := range files {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if text := string(data); strings.Contains(text, "eyJ") || !strings.Contains(text, want) {
			t.Errorf("%s:\n%s", name, text)
		} else if strings.Contains(text, "managedFields") {
			t.Errorf("%s has managedFields:\n%s", name, text)
		}
	}
}

func TestKeepMakesNoEmptyFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pods-run")
	snapshot().Keep(dir)
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("the folder is there: %v", err)
	}
}
