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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

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
	}).Unexplained().ByKubernetes(0))
	Expect(notDeletedBy(m, since)).To(Succeed())
	atRest(ctx, m)
	Expect(dropDeployment(ctx, m)).To(Succeed())
	Expect(m.Annotate(ctx)).To(Succeed())
	Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(match.Make(func(d *appsv1.Deployment) error {
		if d.UID != "" && d.DeletionTimestamp == nil {
			return finding.New("recreated", expected, "your manager created one, although it had heard of the deletion")
		}
		return nil
	}).Unexplained())
	Expect(m.Release(ctx)).To(Succeed())
	Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.CollectTimeout).Should(match.BeGone().ByKubernetes(0))
}

// reportForeign wants the foreign Deployment untouched, and Available False with a message about it.
func reportForeign(ctx context.Context, m env.Memcached, foreign *appsv1.Deployment) *match.Matcher {
	expected := fmt.Sprintf("Available is False, and its message names Deployment %s, which somebody else controls", foreign.Name)
	read := env.DeploymentOf(m)
	return match.Make(func(obj *unstructured.Unstructured) error {
		d, err := read(ctx)
		if err != nil {
			return err
		}
		if err := untouched(d, foreign); err != nil {
			return env.Final(err)
		}
		c, err := env.Condition(obj, "Available")
		switch {
		case err != nil:
			return err
		case c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, foreign.Name):
			return finding.New("not-reported", expected, "%s", text(c))
		}
		return nil
	})
}

// adoptOrReport wants the Memcached to control the Deployment that nobody controlled, or to report it.
func adoptOrReport(ctx context.Context, m env.Memcached, unowned *appsv1.Deployment) *match.Matcher {
	expected := fmt.Sprintf("the Memcached controls Deployment %s, which nobody controlled, or Available is False with a message that names it", m.Name)
	read := env.DeploymentOf(m)
	return match.Make(func(obj *unstructured.Unstructured) error {
		d, err := read(ctx)
		if err != nil {
			return err
		}
		c, err := env.Condition(obj, "Available")
		switch {
		case err != nil:
			return err
		case d.UID != unowned.UID:
			return env.Final(finding.New("unowned-deployment", expected, "it was deleted"))
		case metav1.IsControlledBy(d, obj):
			return nil
		case d.Generation > 1:
			return finding.New("unowned-deployment", expected, "no controller, and it was changed")
		case c == nil || c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, m.Name):
			return finding.New("unowned-deployment", expected, "no controller, and %s", text(c))
		}
		return nil
	})
}

// untouched wants the foreign Deployment as it was created. The deployment controller writes annotations, too.
func untouched(d, foreign *appsv1.Deployment) error {
	const expected = "the foreign Deployment stays as it is"
	annotated := slices.ContainsFunc(slices.Collect(maps.Keys(d.Annotations)), func(name string) bool {
		return !strings.HasPrefix(name, "deployment.kubernetes.io/")
	})
	switch {
	case d.UID != foreign.UID:
		return finding.New("deployment-changed", expected, "it was deleted")
	case len(d.OwnerReferences) != 1 || d.OwnerReferences[0].UID != foreign.OwnerReferences[0].UID:
		return finding.New("deployment-changed", "the foreign Deployment keeps its one owner", "owner references %v", d.OwnerReferences)
	case d.Generation != foreign.Generation || annotated || len(d.Finalizers) > 0 || fmt.Sprint(d.Labels) != fmt.Sprint(foreign.Labels):
		return finding.New("deployment-changed", expected, "it was changed: replicas %d, were %d; labels %v, were %v; annotations %v",
			ptr.Deref(d.Spec.Replicas, 1), ptr.Deref(foreign.Spec.Replicas, 1), d.Labels, foreign.Labels, d.Annotations)
	}
	return nil
}
