package env

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func running(since time.Duration, ready bool) corev1.ContainerStatus {
	state := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(time.Now().Add(-since))}}
	return corev1.ContainerStatus{Name: "cache", Ready: ready, State: state}
}

// A probe is given up when it has had all its chances, and no sooner.
func TestAProbeHasFailedWhenItsChancesAreOver(t *testing.T) {
	probe := &corev1.Probe{InitialDelaySeconds: 2, PeriodSeconds: 2, FailureThreshold: 3}
	quick := &corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1}
	for name, tc := range map[string]struct {
		probe  *corev1.Probe
		status corev1.ContainerStatus
		want   bool
	}{
		"no probe":               {nil, running(time.Minute, false), false},
		"ready":                  {probe, running(time.Minute, true), false},
		"starting":               {probe, corev1.ContainerStatus{Name: "cache"}, false},
		"has a chance left":      {probe, running(8*time.Second, false), false},
		"has had them all":       {probe, running(10*time.Second, false), true},
		"quick, and just begun":  {quick, running(3*time.Second, false), false},
		"quick, and had no luck": {quick, running(5*time.Second, false), true},
	} {
		pod := corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "other"}, {Name: "cache", ReadinessProbe: tc.probe}}}}
		if got := failedProbe(pod, tc.status) != nil; got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestFits(t *testing.T) {
	room := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("1Gi")}
	ask := func(cpus ...string) corev1.Pod {
		var pod corev1.Pod
		for _, cpu := range cpus {
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)},
			}})
		}
		return pod
	}
	for name, tc := range map[string]struct {
		pod  corev1.Pod
		want bool
	}{
		"asks for nothing":   {ask(), true},
		"asks for all":       {ask("2"), true},
		"asks for too much":  {ask("500"), false},
		"too much together":  {ask("1500m", "600m"), false},
		"thousandths":        {ask("500m"), true},
		"of an unknown kind": {corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}}}}}}, false},
	} {
		if got := fits(tc.pod, room); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
