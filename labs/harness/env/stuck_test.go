package env

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func started(since time.Duration, ready bool) corev1.ContainerStatus {
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-since))}}
	return corev1.ContainerStatus{Name: "cache", Ready: ready, State: state}
}

// A probe is given up when it has had all its chances, and no sooner.
func TestFailedProbe(t *testing.T) {
	probe := &corev1.Probe{InitialDelaySeconds: 2, PeriodSeconds: 2, FailureThreshold: 3}
	quick := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1}
	for name, tc := range map[string]struct {
		probe  *corev1.Probe
		status corev1.ContainerStatus
		want   bool
	}{
		"no probe":               {nil, started(time.Minute, false), false},
		"ready":                  {probe, started(time.Minute, true), false},
		"starting":               {probe, corev1.ContainerStatus{Name: "cache"}, false},
		"has a chance left":      {probe, started(8*time.Second, false), false},
		"has had them all":       {probe, started(10*time.Second, false), true},
		"quick, and just begun":  {quick, started(3*time.Second, false), false},
		"quick, and had no luck": {quick, started(5*time.Second, false), true},
	} {
		pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other"}, {Name: "cache", ReadinessProbe: tc.probe}}}}
		if got := failedProbe(pod, tc.status) != nil; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
