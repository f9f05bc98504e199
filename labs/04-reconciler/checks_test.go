package reconciler

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

// No wrong answer has such a probe, because the kubelet takes half a minute to report it.
func TestProbesCanSucceed(t *testing.T) {
	tcp := func(port intstr.IntOrString) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	}
	for name, tc := range map[string]struct {
		asks        corev1.ProbeHandler
		cause, seen string
	}{
		"the port":         {tcp(intstr.FromInt32(45678)), "", ""},
		"a name":           {tcp(intstr.FromString("memcached")), "", ""},
		"a command":        {corev1.ProbeHandler{Exec: &corev1.ExecAction{}}, "", ""},
		"the default port": {tcp(intstr.FromInt32(memcachedPort)), "wrong-probe", "TCP port 11211"},
		"a page":           {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(45678)}}, "wrong-probe", "HTTP page"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{LivenessProbe: &corev1.Probe{ProbeHandler: tc.asks}}}
			findingtest.Require(t, probesCanSucceed(d, 45678), tc.cause, tc.seen)
		})
	}
}

// A container that was started again is running, but has ended before.
func TestKeepRunning(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 64}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	for name, tc := range map[string]struct {
		status      corev1.ContainerStatus
		going       *metav1.Time
		cause, seen string
	}{
		"runs":              {corev1.ContainerStatus{State: running}, nil, "", ""},
		"ended":             {corev1.ContainerStatus{State: ended}, nil, "crashing", `exit code 64; its command is ["memcached"]`},
		"was started again": {corev1.ContainerStatus{State: running, LastTerminationState: ended}, nil, "crashing", "exit code 64"},
		"ends with its Pod": {corev1.ContainerStatus{State: ended}, new(metav1.Now()), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: tc.going}}
			pod.Spec.Containers = []corev1.Container{{Command: []string{"memcached"}}}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{tc.status}
			findingtest.Require(t, keepRunning([]corev1.Pod{pod}), tc.cause, tc.seen)
		})
	}
}
