package env

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/example/operator-lab/labs/internal/finding"
)

// whyNotReady explains a Pod that is not available although no container of it has failed: it cannot be
// placed, or it runs and its probe does not succeed. It returns nil when there is nothing to say yet.
func whyNotReady(pod corev1.Pod) error {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			f := finding.New("unschedulable", "a node for Pod "+pod.Name, "none: %s", c.Message)
			if time.Since(c.LastTransitionTime.Time) > roomTimeout {
				return Final(f)
			}
			return f
		}
	}
	for _, status := range pod.Status.ContainerStatuses {
		if probe := failedProbe(pod, status); probe != nil {
			f := finding.New("not-ready", fmt.Sprintf("container %s of Pod %s is ready", status.Name, pod.Name),
				"it runs, and its readiness probe (%s) has not succeeded for %s", target(probe), time.Since(status.State.Running.StartedAt.Time).Round(time.Second))
			return Final(f)
		}
	}
	return nil
}

// roomTimeout is how long a Pod may wait for Pods of other checks to make room.
const roomTimeout = 10 * time.Second

// readinessTimeout is how long a container may take to answer its readiness probe, however often it is asked.
const readinessTimeout = 4 * time.Second

// failedProbe is the readiness probe of a container that has run for long enough to have failed it as often as
// it may, and for longer than memcached takes to listen.
func failedProbe(pod corev1.Pod, status corev1.ContainerStatus) *corev1.Probe {
	if status.Ready || status.State.Running == nil || status.Started != nil && !*status.Started {
		return nil
	}
	for _, c := range pod.Spec.Containers {
		p := c.ReadinessProbe
		if c.Name != status.Name || p == nil {
			continue
		}
		due := time.Duration(p.InitialDelaySeconds+(p.FailureThreshold+p.SuccessThreshold)*p.PeriodSeconds) * time.Second
		if s := c.StartupProbe; s != nil { // readiness is asked once this one has succeeded
			due += time.Duration(s.InitialDelaySeconds+s.FailureThreshold*s.PeriodSeconds) * time.Second
		}
		if time.Since(status.State.Running.StartedAt.Time) > max(due+time.Second, readinessTimeout) {
			return p
		}
	}
	return nil
}

// target says what a probe asks.
func target(p *corev1.Probe) string {
	switch {
	case p.TCPSocket != nil:
		return "tcp port " + p.TCPSocket.Port.String()
	case p.HTTPGet != nil:
		return "http port " + p.HTTPGet.Port.String() + p.HTTPGet.Path
	case p.Exec != nil:
		return fmt.Sprintf("command %q", p.Exec.Command)
	default:
		return "grpc"
	}
}
