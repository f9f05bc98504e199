package owns

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	_, err = env.Container(before)
	Expect(err).To(Succeed())
	Expect(edit(ctx, m, d.change)).To(Succeed())
	want := d.value(before)
	Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), match.Deployment(func(now *appsv1.Deployment) error {
		if have := d.value(now); have != want {
			return finding.New("not-repaired", fmt.Sprintf("%s is put back to %s", d.what, want), "%s", have).
				With(finding.Field{Path: d.what, Want: want, Have: have})
		}
		return nil
	})))
}

// edit changes the Deployment as somebody with kubectl would.
func edit(ctx context.Context, m env.Memcached, change func(*appsv1.Deployment)) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	base := d.DeepCopy()
	change(d)
	if err := env.Admin().Patch(ctx, d, client.MergeFrom(base), client.FieldOwner("kubectl-edit")); err != nil {
		return fmt.Errorf("edit Deployment %s: %w", m, err)
	}
	return nil
}

func replacePort(d *appsv1.Deployment, from, to string) {
	c := &d.Spec.Template.Spec.Containers[0]
	for i := range c.Command {
		c.Command[i] = strings.ReplaceAll(c.Command[i], from, to)
	}
	for i := range c.Args {
		c.Args[i] = strings.ReplaceAll(c.Args[i], from, to)
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
			return finding.New("restart-undone", "the annotation of `kubectl rollout restart` on the Pod template stays", "the annotation %s is gone", restartedAt)
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
		if len(d.OwnerReferences) == 0 {
			return finding.New("no-reference", expected, "no owner reference")
		}
		for _, ref := range d.OwnerReferences {
			if len(differences(ref, owner)) > 0 {
				continue
			}
			if !ptr.Deref(ref.Controller, false) {
				return finding.New("plain-reference", expected, "an owner reference without controller: true")
			}
			return nil
		}
		ref := d.OwnerReferences[0]
		return finding.New("wrong-owner", expected, "an owner reference to something else: %s %s of %s", ref.Kind, ref.Name, ref.APIVersion).
			With(differences(ref, owner)...)
	})
}

// differences are the fields in which a reference does not lead to owner.
func differences(ref metav1.OwnerReference, owner *unstructured.Unstructured) []finding.Field {
	const path = "metadata.ownerReferences[0]."
	return slices.DeleteFunc([]finding.Field{
		{Path: path + "apiVersion", Want: owner.GetAPIVersion(), Have: ref.APIVersion},
		{Path: path + "kind", Want: owner.GetKind(), Have: ref.Kind},
		{Path: path + "name", Want: owner.GetName(), Have: ref.Name},
		{Path: path + "uid", Want: string(owner.GetUID()), Have: string(ref.UID)},
	}, func(f finding.Field) bool { return f.Want == f.Have })
}

func notDeletedBy(m env.Memcached, since int) error {
	for _, w := range m.Writes(since) {
		if w.Resource == env.Deployments && strings.HasPrefix(w.Verb, "delete") {
			return finding.New("deleted-by-hand", "the garbage collector removes the Deployment", "your manager did: %s", w)
		}
	}
	return nil
}

// undoings is how often a manager has to create a Deployment again to be seen to work against the garbage collector. One
// that has not heard of a deletion does it once.
const undoings = 3

// created counts the Deployments that the manager has created for a Memcached since.
func created(m env.Memcached, since int) (n int) {
	for _, w := range m.Writes(since) {
		if w.Resource == env.Deployments && w.Created() {
			n++
		}
	}
	return n
}

// staysDeleted deletes a Memcached as --cascade=foreground does: its Deployment goes first, and must not be created again. An
// operator can hear of the end of the Deployment before it hears that the Memcached is being deleted, and creates another one
// through no fault of its own. So the Memcached is held until it must have heard: then it is changed once more, without a
// Deployment.
func staysDeleted(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	const expected = "no new Deployment for a Memcached that is being deleted with --cascade=foreground"
	since := env.RequestCount()
	Expect(m.Hold(ctx)).To(Succeed())
	Expect(m.Delete(ctx, metav1.DeletePropagationForeground)).To(Succeed())
	Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.CollectTimeout).Should(match.Make(func(obj *unstructured.Unstructured) error {
		if created(m, since) >= undoings {
			return env.Final(finding.New("recreated", expected, "your manager created one, again and again"))
		}
		if slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			return finding.New("memcached-stuck", "the garbage collector deletes the Deployment of "+obj.GetName(), "it has not finished")
		}
		return nil
	}).KeepCause().ByKubernetes(0))
	Expect(notDeletedBy(m, since)).To(Succeed())
	atRest(ctx, m)
	Expect(dropDeployment(ctx, m)).To(Succeed())
	Expect(m.Annotate(ctx)).To(Succeed())
	Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(match.Make(func(d *appsv1.Deployment) error {
		if d.UID != "" && d.DeletionTimestamp == nil {
			return finding.New("recreated", expected, "your manager created one, although it had heard of the deletion")
		}
		return nil
	}).KeepCause())
	Expect(m.Release(ctx)).To(Succeed())
	Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.CollectTimeout).Should(match.BeGone().ByKubernetes(0))
}

// reportOccupied wants the Deployment that has the Memcached's name untouched, and Available False with a message that names it.
// One that nobody controls may also be taken over.
func reportOccupied(ctx context.Context, m env.Memcached, occupant *appsv1.Deployment) *match.Matcher {
	cause, expected := "not-reported", fmt.Sprintf("Available is False, and its message names Deployment %s, which somebody else controls", m.Name)
	unowned := metav1.GetControllerOf(occupant) == nil
	if unowned {
		cause = "unowned-deployment"
		expected = fmt.Sprintf("the Memcached controls Deployment %s, which nobody controlled, or Available is False with a message that names it", m.Name)
	}
	read := env.DeploymentOf(m)
	return match.Make(func(obj *unstructured.Unstructured) error {
		d, err := read(ctx)
		if err != nil || unowned && metav1.IsControlledBy(d, obj) {
			return err
		}
		if err := untouched(d, occupant); err != nil && unowned {
			return finding.New(cause, expected, "%s", finding.Of(err).Seen) // it may be taken over with the next request
		} else if err != nil {
			return env.Final(err)
		}
		c, err := env.Condition(obj, "Available")
		if err == nil && (c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, m.Name)) {
			err = finding.New(cause, expected, "%s", text(c))
		}
		return err
	})
}

// untouched wants a Deployment as it was created. The deployment controller writes annotations, too.
func untouched(d, before *appsv1.Deployment) error {
	const expected = "the foreign Deployment stays as it is"
	annotated := slices.ContainsFunc(slices.Collect(maps.Keys(d.Annotations)), func(name string) bool {
		return !strings.HasPrefix(name, "deployment.kubernetes.io/")
	})
	switch {
	case d.UID != before.UID:
		return finding.New("deployment-changed", expected, "it was deleted")
	case !equality.Semantic.DeepEqual(d.OwnerReferences, before.OwnerReferences):
		return finding.New("deployment-changed", expected, "its owner references were changed")
	case d.Generation != before.Generation || annotated || len(d.Finalizers) > 0 || fmt.Sprint(d.Labels) != fmt.Sprint(before.Labels):
		return finding.New("deployment-changed", expected, "it was changed: replicas %d, were %d; labels %v, were %v; annotations %v",
			ptr.Deref(d.Spec.Replicas, 1), ptr.Deref(before.Spec.Replicas, 1), d.Labels, before.Labels, d.Annotations)
	}
	return nil
}
