package diagnostics_test

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func TestCause(t *testing.T) {
	const panicked = `ERROR	Observed a panic	{"namespace": "` + here + `", "name": "mine", "panic": "no kettle"}`
	type snapshot = diagnostics.Snapshot
	type requests = []apiproxy.Request
	type objects = []client.Object
	deployment := func(namespace, name string) client.Object {
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	told := func(by string) client.Object {
		e := event(here, by, "Normal", "Created", "Deployment", "mine", "", 1)
		e.ReportingController = by
		return e
	}
	denied := requests{request("list", "deployments", "", 403, "no right")}
	refused, taken := request("update", "deployments", here, 422, "no selector"), request("update", "deployments", here, 200, "")
	for name, c := range map[string]struct {
		s           snapshot
		objects     objects
		cause, seen string
	}{
		"nothing":                    {snapshot{Resource: "deployments", Missing: true}, nil, "as-it-was", ""},
		"no right":                   {snapshot{Resource: "deployments", Missing: true, Denied: denied}, nil, "forbidden", "list deployments"},
		"no right to something else": {snapshot{Resource: "memcacheds", Denied: denied}, nil, "as-it-was", ""},
		"a rejected creation":        {snapshot{Resource: "deployments", Missing: true, Requests: requests{refused}}, nil, "rejected", "no selector"},
		"a panic":                    {snapshot{Resource: "deployments", Missing: true, Log: panicked}, nil, "panicked", "no kettle"},
		"another name":               {snapshot{Resource: "deployments", Missing: true}, objects{deployment(here, "other")}, "wrong-name", here + "/other"},
		"another Memcached's":        {snapshot{Resource: "deployments", Missing: true}, objects{deployment(here, "other"), memcached(here, "other")}, "as-it-was", ""},
		"another namespace":          {snapshot{Resource: "deployments", Missing: true}, objects{deployment("default", "mine")}, "wrong-namespace", "default/mine"},
		"a rejected write":           {snapshot{Resource: "deployments", Requests: requests{taken, refused}}, nil, "rejected", "no selector"},
		"rejected, then taken":       {snapshot{Resource: "deployments", Requests: requests{refused, taken}}, nil, "as-it-was", ""},
		"rejected until it ended":    {snapshot{Resource: "deployments", Requests: requests{refused, taken}, Rejected: true}, nil, "rejected", "no selector"},
		"a conflict":                 {snapshot{Resource: "deployments", Requests: requests{request("update", "deployments", here, 409, "")}}, nil, "as-it-was", ""},
		"a rejected status":          {snapshot{Resource: "memcacheds", Requests: requests{request("update", "memcacheds", here, 422, "no reason")}}, nil, "status-rejected", "no reason"},
		"an event of Kubernetes'":    {snapshot{Resource: "events", Missing: true}, objects{told("deployment-controller")}, "as-it-was", ""},
		"an event on a Deployment":   {snapshot{Resource: "events", Missing: true}, objects{told("deployment-controller"), told("memcached")}, "wrong-object", "Created on Deployment mine"},
		"an unsupported event type":  {snapshot{Resource: "events", Missing: true, Log: "Unsupported event type: 'Error'"}, nil, "unsupported-type", "'Error'"},
	} {
		t.Run(name, func(t *testing.T) {
			c.s.Namespaces, c.s.Of = []string{here}, types.NamespacedName{Namespace: here, Name: "mine"}
			findingtest.Require(t, in(t, &c.s, c.objects...).Cause(finding.New("as-it-was", "something", "none")), c.cause, c.seen)
		})
	}
	s := snapshot{Resource: "deployments", Missing: true, Denied: denied}
	findingtest.Require(t, s.Cause(finding.Machine("answer", context.DeadlineExceeded)), finding.CauseMachine, "")
}

// A probe that has not failed as often as it may is no finding.
func TestNotReady(t *testing.T) {
	probe := &corev1.Probe{InitialDelaySeconds: 2, PeriodSeconds: 2, FailureThreshold: 3, ProbeHandler: corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"ask"}}}}
	for name, c := range map[string]struct {
		probe, startup *corev1.Probe
		ready          bool
		runs           time.Duration
		cause          string
	}{
		"no probe":        {nil, nil, false, time.Minute, ""},
		"ready":           {probe, nil, true, time.Minute, ""},
		"not due":         {probe, nil, false, 8 * time.Second, ""},
		"overdue":         {probe, nil, false, 10 * time.Second, "not-ready"},
		"a startup probe": {probe, probe, false, 10 * time.Second, ""},
		"just started":    {&corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1}, nil, false, 3 * time.Second, ""},
	} {
		status := corev1.ContainerStatus{Name: "cache", Ready: c.ready, State: corev1.ContainerState{
			Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-c.runs))},
		}}
		pod := corev1.Pod{
			Spec:   corev1.PodSpec{Containers: []corev1.Container{{Name: "other"}, {Name: "cache", ReadinessProbe: c.probe, StartupProbe: c.startup}}},
			Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{status}},
		}
		t.Run(name, func(t *testing.T) {
			err := diagnostics.NotReady(pod)
			findingtest.Require(t, err, c.cause, "")
			if err != nil && !finding.Of(err).Late {
				t.Error("a slow machine may be the cause, and the finding does not say so")
			}
		})
	}
}
