package match

import (
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// Exist wants a Deployment that is there.
func Exist() *Matcher {
	m := Deployment(func(*appsv1.Deployment) error { return nil })
	m.exists = true
	return m
}

// BeSameAs wants the Deployment that was there before, changed or not: whoever deletes it and creates another one ends all of
// its Pods for a change that may need none.
func BeSameAs(before *appsv1.Deployment) *Matcher {
	return Make(func(d *appsv1.Deployment) error {
		if d.UID == before.UID {
			return nil
		}
		return env.Final(finding.New("replaced", "Deployment "+before.Name+" is changed where it is", "it was deleted"))
	}).KeepCause()
}

// BeGone wants a Memcached that is deleted to be gone.
func BeGone() *Matcher {
	return Make(func(obj *unstructured.Unstructured) error {
		if obj.GetUID() == "" {
			return nil
		}
		return finding.New("memcached-stuck", "the deleted Memcached goes", "it is still there, held by finalizers %q", obj.GetFinalizers())
	}).KeepCause()
}

// BeCollected wants an object of a kind that the garbage collector has removed.
func BeCollected(kind string) *Matcher {
	return Make(func(obj client.Object) error {
		if obj.GetUID() != "" {
			return finding.New("not-collected", "the "+kind+" goes after its Memcached was deleted", "it is still there, with owner references %v", obj.GetOwnerReferences())
		}
		return nil
	}).KeepCause().ByKubernetes(0)
}

// HaveCondition wants a Memcached with a condition of a type that has a status.
func HaveCondition(kind string, status metav1.ConditionStatus) *Matcher {
	return Make(func(obj *unstructured.Unstructured) error {
		expected := fmt.Sprintf("%s is %s", kind, status)
		c, err := env.Condition(obj, kind)
		switch {
		case err != nil:
			return err
		case c == nil:
			return finding.New("wrong-condition", expected, "no condition %s", kind)
		case c.Status != status:
			return finding.New("wrong-condition", expected, "it is %s (%s: %s)", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

// HaveReplicas wants a Deployment that asks for so many replicas.
func HaveReplicas(want int32) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if have := ptr.Deref(d.Spec.Replicas, 1); have != want {
			return finding.New("wrong-replicas", fmt.Sprintf("spec.replicas %d, as the Memcached's spec.size", want), "spec.replicas %d", have)
		}
		return nil
	})
}

// HavePort wants a Deployment whose container is told a port: in its command, its arguments or its environment. The list of
// ports tells memcached nothing, which shows only where Pods are real.
func HavePort(want int32) *Matcher {
	return Deployment(func(d *appsv1.Deployment) error {
		if !env.TellsPort(d, want) {
			return finding.New("port-not-told", fmt.Sprintf("the container is told port %d", want), "it is started with %q", env.CommandLine(d))
		}
		return nil
	})
}

// HaveAvailablePods wants a [env.Rollout] with so many Pods that are available, and no others.
func HaveAvailablePods(want int32) *Matcher {
	return rollout(func(d *appsv1.Deployment) error {
		s := d.Status
		if s.ObservedGeneration < d.Generation || s.AvailableReplicas != want || s.Replicas != want || s.UpdatedReplicas != want {
			return finding.New("too-few", fmt.Sprintf("%d available Pods", want), "%d available of %d", s.AvailableReplicas, s.Replicas)
		}
		return nil
	})
}

// rollout is a condition that Kubernetes fulfils. What keeps the Pods from becoming available explains more.
func rollout(condition func(*appsv1.Deployment) error) *Matcher {
	m := Make(func(r env.Rollout) error {
		err := condition(r.Deployment)
		if err != nil && r.Trouble != nil {
			return r.Trouble
		}
		return err
	}).ByKubernetes(env.PodsTimeoutAfterFailure)
	m.wantsOne = true
	return m
}

// KeepRunning wants Pods of which no container has ended by itself. Without a readiness probe, which nobody has to write, a
// container that ends at once counts as available for a moment.
func KeepRunning() *Matcher {
	return Make(func(pods []corev1.Pod) error { return env.Ended(pods) })
}
