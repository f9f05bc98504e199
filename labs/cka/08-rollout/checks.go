// Package rollout is task 8 of the CKA practice: roll a stuck rollout back, and make the next ones gentle.
package rollout

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/practice"
)

// Program is the code of the task.
func Program() practice.Program {
	return practice.Program{Setup: setUp, Checks: map[string]practice.Check{"rolled-back": rolledBack, "complete": complete, "gentle": gentle}}
}

// read reads the Deployment, or the Service of its name.
func read(ctx context.Context, c client.Reader, v practice.Values, into client.Object) error {
	return c.Get(ctx, client.ObjectKey{Namespace: v["namespace"], Name: v["name"]}, into)
}

// setUp has the first revision run, and waits until the second one is stuck, which cannot start.
func setUp(ctx context.Context, s *practice.Setup) error {
	if err := errors.Join(s.Apply(ctx, "first.yaml"), s.Available(ctx, s.Values["namespace"]), s.Apply(ctx, "second.yaml")); err != nil {
		return err
	}
	return s.Eventually(ctx, func(ctx context.Context) error {
		d := &appsv1.Deployment{}
		if err := read(ctx, s, s.Values, d); err != nil || d.Status.AvailableReplicas == *d.Spec.Replicas-2 {
			return err
		}
		return errors.New("the rollout has not ended two Pods")
	})
}

func rolledBack(ctx context.Context, r *practice.Reader) error {
	d, service := &appsv1.Deployment{}, &corev1.Service{}
	if err := errors.Join(client.IgnoreNotFound(read(ctx, r, r.Values, d)), read(ctx, r, r.Values, service)); err != nil {
		return err
	}
	if d.UID == "" || d.CreationTimestamp.After(service.CreationTimestamp.Time) {
		return finding.New("recreated", "the Deployment that was there", "it was deleted")
	}
	c := d.Spec.Template.Spec.Containers[0]
	expected := fmt.Sprintf("the image %s with the arguments [--memory-limit=%s]", memcached.Image, r.Values["memory"])
	switch seen := fmt.Sprintf("the image %s with the arguments %v", c.Image, append(c.Command, c.Args...)); {
	case c.Image != memcached.Image:
		return finding.New("wrong-image", expected, "%s", seen)
	case seen != expected:
		return finding.New("half-undone", expected, "%s", seen)
	}
	return nil
}

func complete(ctx context.Context, r *practice.Reader) error {
	return r.Eventually(ctx, func(ctx context.Context) error {
		d, pods := &appsv1.Deployment{}, "%v Pods, %v of the newest revision, %v available, paused: %v"
		err := read(ctx, r, r.Values, d)
		expected := fmt.Sprintf(pods, r.Values["replicas"], r.Values["replicas"], r.Values["replicas"], false)
		seen := fmt.Sprintf(pods, d.Status.Replicas, d.Status.UpdatedReplicas, d.Status.AvailableReplicas, d.Spec.Paused)
		if err != nil || seen == expected && d.Status.ObservedGeneration == d.Generation {
			return err
		}
		return finding.New("incomplete", expected, "%s", seen)
	})
}

// gentle computes percentages as the Deployment controller does.
func gentle(ctx context.Context, r *practice.Reader) error {
	d := &appsv1.Deployment{}
	if err := read(ctx, r, r.Values, d); err != nil {
		return err
	}
	rolling := ptr.Deref(d.Spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{}) // Recreate has none
	surge, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxSurge, int(*d.Spec.Replicas), true)
	missing, _ := intstr.GetScaledValueFromIntOrPercent(rolling.MaxUnavailable, int(*d.Spec.Replicas), false)
	if surge != 1 || missing != 0 {
		return finding.New("strategy", "at most 1 Pod more, and none fewer",
			"%s, maxSurge %v, maxUnavailable %v", d.Spec.Strategy.Type, rolling.MaxSurge, rolling.MaxUnavailable)
	}
	return nil
}
