package reconciler

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func TestProbesCanSucceed(t *testing.T) {
	const port, cause = 45678, "wrong-probe"
	tcp := func(port intstr.IntOrString) corev1.ProbeHandler {
		return corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: port}}
	}
	for name, tc := range map[string]struct {
		asks        corev1.ProbeHandler
		cause, seen string
	}{
		"the port":           {tcp(intstr.FromInt32(port)), "", ""},
		"its name":           {tcp(intstr.FromString("memcached")), "", ""},
		"its number as text": {tcp(intstr.FromString("45678")), "", ""},
		"a command":          {corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"true"}}}, "", ""},
		"another machine": {corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{
			Host: "example.org", Port: intstr.FromInt32(80),
		}}, "", ""},
		"the default port": {tcp(intstr.FromInt32(memcachedPort)), cause, "the liveness probe asks for TCP port 11211"},
		"an unknown name":  {tcp(intstr.FromString("metrics")), cause, "the liveness probe asks for TCP port metrics"},
		"a page":           {corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(port)}}, cause, "the liveness probe asks for an HTTP page"},
		"gRPC":             {corev1.ProbeHandler{GRPC: &corev1.GRPCAction{Port: port}}, cause, "the liveness probe asks for a gRPC service"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &appsv1.Deployment{}
			d.Spec.Template.Spec.Containers = []corev1.Container{{
				Ports:         []corev1.ContainerPort{{Name: "memcached", ContainerPort: port}},
				LivenessProbe: &corev1.Probe{ProbeHandler: tc.asks},
			}}
			findingtest.Require(t, probesCanSucceed(d, port), tc.cause, tc.seen)
		})
	}
}
