package reconciler

import (
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// probesCanSucceed looks at the probes of a container that runs. The kubelet ends it when a liveness probe has failed three
// times, half a minute later by default: too late to wait for. A command of the operator's choice is not judged.
func probesCanSucceed(d *appsv1.Deployment, port int32) error {
	c, err := env.Container(d)
	if err != nil {
		return err
	}
	for _, p := range []struct {
		name  string
		probe *corev1.Probe
	}{{"startup", c.StartupProbe}, {"liveness", c.LivenessProbe}, {"readiness", c.ReadinessProbe}} {
		if asks := neverAnswered(c, p.probe, port); asks != "" {
			return finding.New("wrong-probe", fmt.Sprintf("probes that memcached answers: it listens on port %d, and does not speak HTTP or gRPC", port),
				"the %s probe asks for %s", p.name, asks)
		}
	}
	return nil
}

// neverAnswered is what a probe asks for if nobody ever answers that, else "".
func neverAnswered(c corev1.Container, p *corev1.Probe, port int32) string {
	switch {
	case p == nil || p.Exec != nil:
		return ""
	case p.HTTPGet != nil:
		return "an HTTP page"
	case p.GRPC != nil:
		return "a gRPC service"
	case p.TCPSocket != nil && p.TCPSocket.Host == "" && portOf(c, p.TCPSocket.Port) != port:
		return "TCP port " + p.TCPSocket.Port.String()
	}
	return ""
}

// portOf is the number of a port as the kubelet finds it: by its name among the container's ports, or as a number.
func portOf(c corev1.Container, port intstr.IntOrString) int32 {
	if port.Type == intstr.Int {
		return port.IntVal
	}
	for _, p := range c.Ports {
		if p.Name == port.StrVal {
			return p.ContainerPort
		}
	}
	number, err := strconv.ParseInt(port.StrVal, 10, 32)
	if err != nil {
		return 0
	}
	return int32(number)
}
