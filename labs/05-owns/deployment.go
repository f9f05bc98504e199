package owns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// drift is one edit of a Deployment that its operator has to put back.
type drift struct {
	what   string
	change func(*appsv1.Deployment)
	value  func(*appsv1.Deployment) string
}

// drifts are edits that every style of writing can put back: each changes a value in its place.
func drifts(m env.Memcached) []drift {
	return []drift{
		{
			what:   "spec.replicas", // none: an operator may leave out what is scaled to zero
			change: func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) },
			value:  func(d *appsv1.Deployment) string { return fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)) },
		},
		{
			what:   "the container's image",
			change: func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "operator-lab.local/drifted:1" },
			value:  func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image },
		},
		{
			what:   "the port on the container's command line",
			change: func(d *appsv1.Deployment) { replacePort(d, fmt.Sprint(m.Port), fmt.Sprint(m.Port+1)) },
			value:  env.CommandLine,
		},
	}
}

// repairs makes the edit and waits until the value is what it was, without touching the Memcached.
func repairs(ctx context.Context, m env.Memcached, d drift) {
	GinkgoHelper()
	before, err := m.Deployment(ctx)
	Expect(err).To(Succeed())
	Expect(m.EditDeployment(ctx, d.change)).To(Succeed())
	want := d.value(before)
	Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), match.Deployment(func(now *appsv1.Deployment) error {
		if have := d.value(now); have != want {
			return finding.New("not-repaired", fmt.Sprintf("%s is put back to %s", d.what, want), "%s", have)
		}
		return nil
	})))
}

// replacePort replaces a port in all that tells memcached where to listen.
func replacePort(d *appsv1.Deployment, from, to string) {
	c := &d.Spec.Template.Spec.Containers[0]
	for _, words := range [][]string{c.Command, c.Args} {
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], from, to)
		}
	}
	for i := range c.Env {
		c.Env[i].Value = strings.ReplaceAll(c.Env[i].Value, from, to)
	}
}

const (
	foreignKey, foreignValue = "example.org/team", "blue"
	// restartedAt is the annotation of the Pod template with which `kubectl rollout restart` replaces all Pods.
	restartedAt = "kubectl.kubernetes.io/restartedAt"
)

func setMetadata(d *appsv1.Deployment) {
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, foreignKey, foreignValue)
	metav1.SetMetaDataLabel(&d.ObjectMeta, foreignKey, foreignValue)
	metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, restartedAt, foreignValue)
}

// keepMetadata wants what [setMetadata] has set.
func keepMetadata() *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		switch {
		case d.Annotations[foreignKey] != foreignValue || d.Labels[foreignKey] != foreignValue:
			return finding.New("metadata-removed", fmt.Sprintf("the label and the annotation %s that somebody else set stay", foreignKey),
				"labels %v, annotations %v", d.Labels, d.Annotations)
		case d.Spec.Template.Annotations[restartedAt] != foreignValue:
			return finding.New("restart-undone", "the annotation of `kubectl rollout restart` on the Pod template stays",
				"the annotation %s is gone", restartedAt)
		}
		return nil
	}).KeepCause()
}

// memcached reads a Memcached.
func memcached(ctx context.Context, m env.Memcached) *unstructured.Unstructured {
	GinkgoHelper()
	obj, err := m.Get(ctx)
	Expect(err).To(Succeed())
	return obj
}

// beControlledBy wants the owner reference that makes a Memcached the controller of the Deployment.
func beControlledBy(owner *unstructured.Unstructured) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		expected := "an owner reference with controller: true to Memcached " + owner.GetName()
		ref, want := metav1.GetControllerOf(d), metav1.NewControllerRef(owner, owner.GroupVersionKind())
		switch {
		case len(d.OwnerReferences) == 0:
			return finding.New("no-reference", expected, "no owner reference")
		case ref == nil:
			return finding.New("plain-reference", expected, "an owner reference without controller: true")
		case ref.APIVersion != want.APIVersion || ref.Kind != want.Kind || ref.Name != want.Name || ref.UID != want.UID:
			return finding.New("wrong-owner", expected,
				"an owner reference to %s %s %s with the uid %s", ref.APIVersion, ref.Kind, ref.Name, ref.UID)
		}
		return nil
	})
}

// writes counts the manager's writes about a Memcached since an index that are of a kind.
func writes(m env.Memcached, since int, kind func(apiproxy.Request) bool) int {
	return len(slices.DeleteFunc(m.Writes(since), func(r apiproxy.Request) bool { return !kind(r) }))
}

func createsDeployment(r apiproxy.Request) bool { return r.Resource == "deployments" && r.Created() }

func deletesDeployment(r apiproxy.Request) bool {
	return r.Resource == "deployments" && strings.HasPrefix(r.Verb, "delete")
}

// staysDeleted deletes a Memcached that a finalizer of somebody else holds, and then its Deployment, as --cascade=foreground
// does. The Deployment must not be created again, but for one by a manager whose cache was late.
func staysDeleted(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Expect(m.Hold(ctx)).To(Succeed())
	Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
	Expect(m.WaitIdle(ctx)).To(Succeed()) // the manager has heard of it, most likely
	for range 2 {
		since := env.RequestCount()
		Expect(dropDeployment(ctx, m)).To(Succeed())
		Expect(env.Sleep(ctx, stayPeriod)).To(Succeed())
		if writes(m, since, createsDeployment) == 0 {
			return
		}
	}
	Expect(finding.New("recreated", "no new Deployment for a Memcached that is being deleted", "your manager created one")).To(Succeed())
}

// beMissing wants no Deployment. cause is that of one that is there.
func beMissing(cause, expected string) *match.Matcher {
	return match.Make(func(d *appsv1.Deployment) error {
		if d.UID == "" {
			return nil
		}
		return finding.New(cause, expected, "there is one, with the owner references %v", d.OwnerReferences)
	}).KeepCause()
}

// reportOccupied wants the Deployment that has the Memcached's name untouched, and Available False with a message that names it.
// One that nobody controls may also be taken over.
func reportOccupied(ctx context.Context, m env.Memcached, occupant *appsv1.Deployment) *match.Matcher {
	cause := "not-reported"
	expected := fmt.Sprintf("Available is False, and its message names Deployment %s, which somebody else controls", m.Name)
	unowned := metav1.GetControllerOf(occupant) == nil
	if unowned {
		cause = "unowned-deployment"
		expected = fmt.Sprintf(
			"the Memcached controls Deployment %s, which nobody controlled, or Available is False with a message that names it", m.Name)
	}
	read := env.DeploymentOf(m)
	return match.Make(func(obj *unstructured.Unstructured) error {
		d, err := read(ctx)
		if err != nil || unowned && metav1.IsControlledBy(d, obj) {
			return err
		}
		changed := edited(d, occupant)
		if changed != "" && !unowned {
			return StopTrying("nothing will change").Wrap(finding.New(changedCause, changedExpected, "%s", changed))
		}
		c := env.Condition(obj, "Available")
		switch {
		case changed != "": // it may be taken over with the next request
			return finding.New(cause, expected, "%s", changed)
		case c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, m.Name):
			return finding.New(cause, expected, "%s", text(c))
		}
		return nil
	})
}

const changedCause, changedExpected = "deployment-changed", "the foreign Deployment stays as it is"

// beUntouched wants a Deployment as it was created.
func beUntouched(before *appsv1.Deployment) *match.Matcher {
	return match.Make(func(d *appsv1.Deployment) error {
		if changed := edited(d, before); changed != "" {
			return finding.New(changedCause, changedExpected, "%s", changed)
		}
		return nil
	}).KeepCause()
}

// edited says what somebody has done to a Deployment, "" if nothing. The deployment controller may write it.
func edited(d, before *appsv1.Deployment) string {
	switch {
	case d.UID != before.UID:
		return "it was deleted"
	case !equality.Semantic.DeepEqual(d.OwnerReferences, before.OwnerReferences):
		return "its owner references were changed"
	case d.Generation != before.Generation:
		return "its spec was changed"
	}
	for _, entry := range d.ManagedFields {
		if entry.Manager != before.ManagedFields[0].Manager && entry.Manager != "kube-controller-manager" {
			return entry.Manager + " has written it"
		}
	}
	return ""
}
