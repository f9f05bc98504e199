// Package owns holds the checks of lab 5: the operator notices what happens to its Deployment, tells it
// in the status, and respects what is not its own.
package owns

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/finding"
)

// toTell is how long a wrong status has time to be written once its occasion is there.
const toTell = harness.QuietPeriod / 2

// deletions is how often a Deployment is deleted: an operator that polls can be lucky once.
const deletions = 5

// causeTooSlow is the cause when a Deployment comes back, and late.
const causeTooSlow = "too-slow"

// nearlyAll is how many of four Pods a quota admits: enough for the Deployment's own condition Available,
// which by default lets a quarter of them be missing, and not enough for a Memcached's.
const nearlyAll = 3

var _ = harness.Lab(5, func() {
	harness.Check("owner-reference", harness.First, func(ctx SpecContext) {
		m := created(ctx, harness.PodlessNamespace(ctx))
		_, err := m.AwaitDeployment(ctx, harness.ReactBudget, controlledBy(ctx, m))
		harness.Require(err)
	})

	harness.Check("recreates-deployment", func(ctx SpecContext) {
		r := harness.Rand()
		m := created(ctx, harness.PodlessNamespace(ctx))
		slow := false
		for range deletions {
			harness.Require(harness.Throughout(ctx, time.Duration(r.IntN(400))*time.Millisecond, func() error { return nil }))
			err := comesBack(ctx, m)
			// Once may be the machine. Whoever polls has just looked then, and is as late the next time.
			if once := err != nil && finding.Of(err).Cause == causeTooSlow && !slow; !once {
				harness.Require(err)
			}
			slow = err != nil
		}
	})

	harness.Check("repairs-drift", func(ctx SpecContext) {
		m := created(ctx, harness.PodlessNamespace(ctx))
		harness.Require(m.Lull(ctx))
		for _, d := range drifts(m) {
			harness.Require(repaired(ctx, m, d))
		}
	})

	harness.Check("keeps-foreign-metadata", func(ctx SpecContext) {
		m := created(ctx, harness.PodlessNamespace(ctx))
		harness.Require(edit(ctx, m, setMetadata))
		harness.Require(m.Annotate(ctx, "one more pass"))
		harness.Require(m.Lull(ctx)) // that pass is not to be the one that repairs
		harness.Require(repaired(ctx, m, drifts(m)[0]))
		harness.Require(harness.Throughout(ctx, harness.ReactBudget/4, func() error { return metadataKept(ctx, m) }))
	})

	harness.Check("available-true", func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
		m.Size = 1 + m.Size%2 // up to 3 replicas a Deployment, too, wants all of them; available-false is about more
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		harness.Require(becomesAvailable(ctx, m))
		m.Size++
		harness.Require(m.SetSpec(ctx, "size", m.Size))
		harness.Require(becomesAvailable(ctx, m))
		harness.Require(m.LosePods(ctx))
		harness.Require(m.Await(ctx, harness.ReactBudget, lost))
	})

	harness.Check("available-false", func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
		m.Size = nearlyAll + 1
		harness.Require(harness.Quota(ctx, m.Namespace, nearlyAll))
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		if harness.Run().RealPods {
			harness.Require(m.AwaitSome(ctx, nearlyAll))
		}
		harness.Require(staysUnavailable(ctx, m))
		harness.Require(m.SetSpec(ctx, "size", nearlyAll+2))
		harness.Require(staysUnavailable(ctx, m))
	})

	harness.Check("garbage-collected", SpecPriority(1), func(ctx SpecContext) {
		ns := harness.PodlessNamespace(ctx)
		all := createdAll(ctx, ns, 3)
		gone, kept := all[0], all[1:]
		for _, m := range all {
			_, err := m.AwaitDeployment(ctx, harness.ReactBudget, controlledBy(ctx, m))
			harness.Require(err)
		}
		since := harness.Now()
		harness.Require(gone.Delete(ctx, metav1.DeletePropagationBackground))
		harness.Require(collected(ctx, gone))
		harness.Require(notDeletedBy(gone, since))
		for _, m := range kept {
			harness.Require(m.Delete(ctx, metav1.DeletePropagationOrphan))
		}
		harness.Require(notRecreated(ctx, createdAll(ctx, ns, 2)...)) // which takes half of the quiet period
		harness.Require(harness.Throughout(ctx, harness.QuietPeriod-toTell, func() error { return orphanKept(ctx, kept) }))
	})

	harness.Check("foreign-deployment", func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.PodlessNamespace(ctx))
		foreign, err := m.CreateForeign(ctx)
		harness.Require(err)
		harness.Require(m.Create(ctx))
		harness.Require(m.Await(ctx, harness.StartBudget, reportsForeign(ctx, m, foreign)))
		harness.Require(harness.Throughout(ctx, harness.QuietPeriod, func() error { return untouched(ctx, m, foreign) }))
	})

	harness.Check("status-settles", harness.Long, func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
		m.Size = 1
		harness.Require(harness.Quota(ctx, m.Namespace, 1)) // for no other Pod than this one's
		harness.Require(m.Create(ctx))
		harness.Require(m.Await(ctx, harness.StartBudget, func(obj *unstructured.Unstructured) error {
			_, err := available(obj)
			return err
		}))
		harness.Require(m.AwaitMade(ctx))
		harness.Require(comeAndGo(ctx, m.Namespace)) // while the Pod starts
		_, err := m.AwaitPods(ctx)                   // one that starts late would be news
		harness.Require(err)
		harness.Require(m.Settled(ctx))
		harness.Require(m.HardlyReconciles(ctx, func() error {
			return m.Unchanged(ctx, func() error { return m.Annotate(ctx, "one more pass") })
		}))
	})
})

// A manager that looks after the gone every five seconds does not rest in any [harness.QuietPeriod] when there are so many
// of them, and so far apart: without the distance it would look after all at once, and rest in between.
const (
	passersby = 8
	distance  = 500 * time.Millisecond
)

// comeAndGo has some Memcacheds made and deleted one after the other, with all that is left of them.
func comeAndGo(ctx context.Context, namespace string) error {
	GinkgoHelper()
	for range passersby {
		began := time.Now()
		m := created(ctx, namespace)
		if err := m.Delete(ctx, metav1.DeletePropagationBackground); err != nil {
			return err
		}
		if err := dropDeployment(ctx, m); err != nil {
			return err
		}
		if err := harness.Throughout(ctx, distance-time.Since(began), func() error { return nil }); err != nil {
			return err
		}
	}
	return nil
}

// dropDeployment deletes the Memcached's Deployment, if there is one.
func dropDeployment(ctx context.Context, m harness.Memcached) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	if err := client.IgnoreNotFound(harness.Admin().Delete(ctx, d, background)); err != nil {
		return fmt.Errorf("delete the Deployment of %s: %w", m, err)
	}
	return nil
}

// created makes a Memcached and waits for its Deployment.
func created(ctx context.Context, namespace string) harness.Memcached {
	GinkgoHelper()
	return createdAll(ctx, namespace, 1)[0]
}

// createdAll makes n Memcacheds, and waits for all their Deployments.
func createdAll(ctx context.Context, namespace string, n int) []harness.Memcached {
	GinkgoHelper()
	var all []harness.Memcached
	for range n {
		m := harness.Invent(harness.Rand(), namespace)
		harness.Require(m.Create(ctx))
		all = append(all, m)
	}
	for _, m := range all {
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
	}
	return all
}

// controlledBy wants the owner reference that makes m the controller of the Deployment.
func controlledBy(ctx context.Context, m harness.Memcached) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		owner, err := m.Get(ctx)
		if err != nil {
			return fmt.Errorf("get Memcached %s: %w", m, err)
		}
		expected := "an owner reference with controller: true to Memcached " + m.Name
		if len(d.OwnerReferences) == 0 {
			return finding.New("no-reference", expected, "no owner reference")
		}
		for _, ref := range d.OwnerReferences {
			if len(misled(ref, owner)) > 0 {
				continue
			}
			if ref.Controller == nil || !*ref.Controller {
				return finding.New("plain-reference", expected, "an owner reference without controller: true")
			}
			return nil
		}
		f := finding.New("wrong-owner", expected, "an owner reference to something else: %s %s of %s",
			d.OwnerReferences[0].Kind, d.OwnerReferences[0].Name, d.OwnerReferences[0].APIVersion)
		f.Fields = misled(d.OwnerReferences[0], owner)
		return f
	}
}

// misled are the fields in which a reference does not lead to owner.
func misled(ref metav1.OwnerReference, owner *unstructured.Unstructured) []finding.Field {
	var fields []finding.Field
	for _, f := range []finding.Field{
		{Path: "apiVersion", Want: owner.GetAPIVersion(), Have: ref.APIVersion},
		{Path: "kind", Want: owner.GetKind(), Have: ref.Kind},
		{Path: "name", Want: owner.GetName(), Have: ref.Name},
		{Path: "uid", Want: string(owner.GetUID()), Have: string(ref.UID)},
	} {
		if f.Want != f.Have {
			f.Path = "metadata.ownerReferences[0]." + f.Path
			fields = append(fields, f)
		}
	}
	return fields
}

// comesBack deletes the Deployment and wants another one in its place, soon.
func comesBack(ctx context.Context, m harness.Memcached) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	served, err := harness.Served(ctx, m.Namespace)
	if err != nil {
		return err
	}
	if err := harness.Admin().Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return fmt.Errorf("delete Deployment %s: %w", m, err)
	}
	took := time.Duration(0)
	back := harness.Until(ctx, harness.StallBudget, &appsv1.DeploymentList{}, func() error {
		now, err := m.Deployment(ctx)
		if isGone(err) && served() > harness.LateBudget {
			return harness.Stop(err)
		}
		if err != nil {
			return err
		}
		if now.UID == d.UID {
			return fmt.Errorf("the deleted Deployment %s is still there", m)
		}
		took = served()
		return nil
	}, client.InNamespace(m.Namespace))
	expected := fmt.Sprintf("a deleted Deployment is back within %s", harness.RestoreBudget)
	switch {
	case back != nil && !isGone(back):
		return back
	case back != nil:
		return finding.New("not-recreated", expected, "no Deployment %s", m)
	case took > harness.RestoreBudget:
		return finding.New(causeTooSlow, expected, "it came back after %s: your operator polls, or waits", took.Round(100*time.Millisecond))
	}
	return nil
}

// staysUnavailable waits for the condition to say that Pods are missing, and holds it to that: the news of those
// that did start may still be on its way.
func staysUnavailable(ctx context.Context, m harness.Memcached) error {
	if err := m.Await(ctx, harness.ReactBudget, unavailable); err != nil {
		return err
	}
	return harness.Throughout(ctx, toTell, func() error {
		obj, err := m.Get(ctx)
		if err != nil {
			return err
		}
		return unavailable(obj)
	})
}

// drift is one edit of a Deployment that its operator has to put back.
type drift struct {
	cause, what string
	change      func(*appsv1.Deployment)
	value       func(*appsv1.Deployment) string
}

// drifts are edits that every style of writing can put back: each changes a value in its place.
func drifts(m harness.Memcached) []drift {
	return []drift{
		{
			cause: "replicas-not-repaired", what: "spec.replicas",
			change: func(d *appsv1.Deployment) { d.Spec.Replicas = new(m.Size + 1) },
			value:  func(d *appsv1.Deployment) string { return fmt.Sprint(harness.Replicas(d)) },
		},
		{
			cause: "image-not-repaired", what: "the container's image",
			change: func(d *appsv1.Deployment) {
				d.Spec.Template.Spec.Containers[0].Image = "operator-lab.local/drifted:1"
			},
			value: func(d *appsv1.Deployment) string { return d.Spec.Template.Spec.Containers[0].Image },
		},
		{
			cause: "port-not-repaired", what: "the port on the container's command line",
			change: func(d *appsv1.Deployment) { replacePort(d, fmt.Sprint(m.Port), fmt.Sprint(m.Port+1)) },
			value:  func(d *appsv1.Deployment) string { return commandLine(d) },
		},
	}
}

// repaired makes the edit and waits until the value is what it was, without touching the Memcached.
func repaired(ctx context.Context, m harness.Memcached, d drift) error {
	before, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	if _, err := harness.Container(before); err != nil {
		return err
	}
	if err := edit(ctx, m, d.change); err != nil {
		return err
	}
	want := d.value(before)
	_, err = m.AwaitDeployment(ctx, harness.ReactBudget, func(now *appsv1.Deployment) error {
		if have := d.value(now); have != want {
			return finding.New(d.cause, fmt.Sprintf("%s is put back to %s", d.what, want), "%s", have).
				With(finding.Field{Path: d.what, Want: want, Have: have})
		}
		return nil
	})
	return err
}

// edit changes the Deployment as somebody with kubectl would.
func edit(ctx context.Context, m harness.Memcached, change func(*appsv1.Deployment)) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	base := d.DeepCopy()
	change(d)
	if err := harness.Admin().Patch(ctx, d, client.MergeFrom(base), client.FieldOwner("kubectl-edit")); err != nil {
		return fmt.Errorf("edit Deployment %s: %w", m, err)
	}
	return nil
}

// commandLine is everything that tells memcached where to listen.
func commandLine(d *appsv1.Deployment) string {
	c := d.Spec.Template.Spec.Containers[0]
	var words []string
	for _, variable := range c.Env {
		words = append(words, variable.Name+"="+variable.Value)
	}
	return strings.Join(slices.Concat(words, c.Command, c.Args), " ")
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

const foreignKey, foreignValue = "example.org/team", "blue"

func setMetadata(d *appsv1.Deployment) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	d.Annotations[foreignKey], d.Labels[foreignKey] = foreignValue, foreignValue
}

func metadataKept(ctx context.Context, m harness.Memcached) error {
	d, err := m.Deployment(ctx)
	if err != nil {
		return err
	}
	expected := fmt.Sprintf("the %s that somebody else set stays", foreignKey)
	if d.Annotations[foreignKey] != foreignValue {
		return finding.New("annotation-removed", expected, "the annotation is gone")
	}
	if d.Labels[foreignKey] != foreignValue {
		return finding.New("label-removed", expected, "the label is gone")
	}
	return nil
}

// available reads the condition, which has to be there and to be complete.
func available(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	c, err := harness.Condition(obj, "Available")
	if err != nil {
		return nil, err
	}
	expected := "a condition of the type Available in the status"
	switch {
	case c == nil:
		return nil, finding.New("no-condition", expected, "no such condition")
	case c.ObservedGeneration == 0:
		return nil, finding.New("no-observed-generation", expected+", with observedGeneration", "observedGeneration is missing")
	case c.ObservedGeneration != obj.GetGeneration():
		return nil, finding.New("stale-observed-generation", fmt.Sprintf("observedGeneration %d", obj.GetGeneration()), "observedGeneration %d", c.ObservedGeneration)
	case !harness.CamelCase.MatchString(c.Reason):
		return nil, finding.New("no-reason", "a reason in CamelCase", "reason %q", c.Reason)
	}
	return c, nil
}

// becomesAvailable wants True, and only when the Deployment has size available replicas. Its Pods are waited
// for as long as Pods take; the operator then has to notice as soon as with anything else.
func becomesAvailable(ctx context.Context, m harness.Memcached) error {
	expected := fmt.Sprintf("Available is True while %d of %d replicas are available, and only then", m.Size, m.Size)
	_, err := m.AwaitPods(ctx, func(*appsv1.Deployment) error {
		obj, err := m.Get(ctx)
		if err != nil {
			return err
		}
		if c, err := available(obj); err != nil || c.Status != metav1.ConditionTrue {
			return nil //nolint:nilerr // a condition that is not there yet is not True
		}
		d, err := m.Deployment(ctx) // read after the status, so that it can only be further than the status knew
		if err != nil {
			return err
		}
		if d.Status.AvailableReplicas < m.Size {
			return finding.New("true-too-early", expected, "Available is True with %d available", d.Status.AvailableReplicas)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.Await(ctx, harness.ReactBudget, func(obj *unstructured.Unstructured) error {
		c, err := available(obj)
		if err == nil && c.Status != metav1.ConditionTrue {
			err = finding.New("not-true", expected, "Available is %s (%s: %s), and all %d are available", c.Status, c.Reason, c.Message, m.Size)
		}
		return err
	})
}

// lost wants the condition of a Memcached that was available and is no more, without any edit of it.
func lost(obj *unstructured.Unstructured) error {
	c, err := available(obj)
	if err != nil || c.Status == metav1.ConditionFalse {
		return err
	}
	cause := "stays-true"
	if c.Status != metav1.ConditionTrue {
		cause = "not-false"
	}
	return finding.New(cause, "Available is False again after all Pods were lost", "Available is %s (%s: %s)", c.Status, c.Reason, c.Message)
}

func unavailable(obj *unstructured.Unstructured) error {
	c, err := available(obj)
	if err != nil {
		return err
	}
	const expected = "Available is False while a quota keeps one of the Pods from being created"
	switch c.Status {
	case metav1.ConditionFalse:
		return nil
	case metav1.ConditionTrue:
		return finding.New("still-true", expected, "Available is True (%s: %s)", c.Reason, c.Message)
	default:
		return finding.New("not-false", expected, "Available is %s (%s: %s)", c.Status, c.Reason, c.Message)
	}
}

// isGone says whether an error of [harness.Memcached.Deployment] means that there is none, and not that nobody knows.
func isGone(err error) bool { return err != nil && finding.Of(err).Cause == harness.CauseNoDeployment }

// collected waits for the garbage collector.
func collected(ctx context.Context, m harness.Memcached) error {
	return harness.UntilKubernetes(ctx, harness.CollectBudget, &appsv1.DeploymentList{}, func() error {
		d, err := m.Deployment(ctx)
		switch {
		case err == nil:
			return finding.New("not-collected", "the Deployment goes after its Memcached was deleted", "it is still there, with owner references %v", d.OwnerReferences)
		case isGone(err):
			return nil
		}
		return err
	}, client.InNamespace(m.Namespace))
}

func notDeletedBy(m harness.Memcached, since int) error {
	for _, w := range m.Writes(since) {
		if w.Resource == "deployments" && strings.HasPrefix(w.Verb, "delete") {
			return finding.New("deleted-by-hand", "the garbage collector removes the Deployment", "your manager did: %s", w)
		}
	}
	return nil
}

// notRecreated deletes Memcacheds as --cascade=foreground does: their Deployments go first, and must not be made anew.
// An operator can hear of the end of a Deployment before it hears that the Memcached is being deleted, and makes
// another one through no fault of its own. So the Memcacheds are held until it must have heard: then they are changed
// once more, without a Deployment, and whoever makes one now knows what it does.
func notRecreated(ctx context.Context, all ...harness.Memcached) error {
	since := harness.Now()
	for _, m := range all {
		if err := errors.Join(m.Hold(ctx), m.BeginDelete(ctx, metav1.DeletePropagationForeground)); err != nil {
			return err
		}
	}
	err := childrenGone(ctx, all, since)
	if err == nil {
		err = staysChildless(ctx, all)
	}
	for _, m := range all {
		err = errors.Join(err, m.Release(ctx))
	}
	for _, m := range all {
		if err == nil {
			err = m.AwaitCollected(ctx)
		}
	}
	return err
}

const (
	causeRecreated = "recreated"
	childless      = "no new Deployment for a Memcached that is being deleted with --cascade=foreground"
)

// undoings is how often a manager has to make a Deployment anew to be seen to work against the garbage collector. One
// that has not heard of the deletion does it once.
const undoings = 3

// childrenGone waits until the garbage collector has done its part of the foreground deletions, or the manager
// undoes it: that would go on for ever. Children that do not block the deletion of their owner are left for later.
func childrenGone(ctx context.Context, all []harness.Memcached, since int) error {
	return harness.UntilKubernetes(ctx, harness.CollectBudget, &appsv1.DeploymentList{}, func() error {
		if err := undone(all, since); err != nil {
			return harness.Stop(err)
		}
		for _, m := range all {
			obj, err := m.Get(ctx)
			if err != nil {
				return err
			}
			if slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents) {
				return finding.New("memcached-stuck", "the garbage collector deletes the Deployment of "+m.String(), "it has not finished")
			}
		}
		return nil
	}, client.InNamespace(all[0].Namespace))
}

// staysChildless takes away what the manager has made before it heard, and has it look once more.
func staysChildless(ctx context.Context, all []harness.Memcached) error {
	for _, m := range all {
		if err := m.Lull(ctx); err != nil {
			return err
		}
	}
	for _, m := range all {
		if err := errors.Join(dropDeployment(ctx, m), m.Annotate(ctx, "on its way out")); err != nil {
			return err
		}
	}
	return harness.Throughout(ctx, toTell, func() error {
		for _, m := range all {
			_, err := m.Deployment(ctx)
			if err == nil {
				return finding.New(causeRecreated, childless, "your manager made one, although it had heard of the deletion")
			}
			if !isGone(err) {
				return err
			}
		}
		return nil
	})
}

// undone is a finding when the manager has made a Deployment for one of the Memcacheds again and again since.
func undone(all []harness.Memcached, since int) error {
	for _, m := range all {
		made := 0
		for _, w := range m.Writes(since) {
			if w.Resource == "deployments" && w.Verb == "create" {
				made++
			}
		}
		if made >= undoings {
			return finding.New(causeRecreated, childless, "your manager made one, again and again")
		}
	}
	return nil
}

// orphanKept wants one of the orphaned Deployments to stay. An operator that sets its owner reference on
// every pass can lose a race against the garbage collector once, through no fault of its own: it hears
// of the Deployment's change before it hears of the Memcached's deletion.
func orphanKept(ctx context.Context, orphaned []harness.Memcached) error {
	for _, m := range orphaned {
		if _, err := m.Deployment(ctx); !isGone(err) {
			return err
		}
	}
	return finding.New("orphan-deleted", "a Deployment that was orphaned with --cascade=orphan stays", "it is gone")
}

// reportsForeign wants the foreign Deployment untouched, and Available False with a message about it.
func reportsForeign(ctx context.Context, m harness.Memcached, foreign *appsv1.Deployment) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		if err := untouched(ctx, m, foreign); err != nil {
			return harness.Stop(err)
		}
		expected := fmt.Sprintf("Available is False, and its message names Deployment %s, which somebody else controls", foreign.Name)
		c, err := available(obj)
		if err != nil && finding.Of(err).Cause == "no-condition" {
			return finding.New("not-reported", expected, "no such condition")
		}
		if err != nil {
			return err
		}
		if c.Status != metav1.ConditionFalse {
			return finding.New("not-reported", expected, "Available is %s (%s: %s)", c.Status, c.Reason, c.Message)
		}
		if !strings.Contains(c.Message, foreign.Name) {
			return finding.New("not-named", expected, "the message %q", c.Message)
		}
		return nil
	}
}

func untouched(ctx context.Context, m harness.Memcached, foreign *appsv1.Deployment) error {
	d, err := m.Deployment(ctx)
	if isGone(err) {
		return finding.New("deployment-changed", "the foreign Deployment stays as it is", "it is gone")
	}
	if err != nil {
		return err
	}
	for _, ref := range d.OwnerReferences {
		if ref.UID != foreign.OwnerReferences[0].UID {
			return finding.New("stolen", "the foreign Deployment keeps its one owner", "an owner reference to %s %s", ref.Kind, ref.Name)
		}
	}
	if d.Generation != foreign.Generation || d.UID != foreign.UID || !sameMetadata(d, foreign) {
		return finding.New("deployment-changed", "the foreign Deployment stays as it is",
			"it was changed: replicas %d, were %d; labels %v, were %v", harness.Replicas(d), harness.Replicas(foreign), d.Labels, foreign.Labels)
	}
	return nil
}

// sameMetadata compares what an operator that takes a Deployment for its own writes into its metadata.
// Annotations are left out: the deployment controller writes some, too.
func sameMetadata(d, foreign *appsv1.Deployment) bool {
	return fmt.Sprint(d.Labels) == fmt.Sprint(foreign.Labels) && len(d.OwnerReferences) == len(foreign.OwnerReferences)
}
