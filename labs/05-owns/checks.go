// Package owns holds the checks of lab 5: the operator notices what happens to its Deployment, tells it
// in the status, and respects what is not its own.
package owns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// keptPeriod is how long metadata of others has to stay.
const keptPeriod = 2 * time.Second

// toTell is how long a wrong status has time to be written once its occasion is there.
const toTell = env.QuietPeriod / 2

// restoreTimeout is the contract's limit for a deleted Deployment to be back, in the time of [match.ExpectSoon]. Polling
// operators miss it.
const restoreTimeout = 2 * time.Second

// deletions is how often a Deployment is deleted: an operator that polls can be lucky once.
const deletions = 5

const (
	// freedTimeout is the contract's limit for a Memcached to get its own Deployment once the one in its way is gone, where
	// the manager has not asked to look again. One that watches needs a moment.
	freedTimeout = 10 * time.Second
	// uncountedTimeout is that limit where the manager does not count its passes: it may look every minute.
	uncountedTimeout = 70 * time.Second
)

// nearlyAll is how many of four Pods a quota admits: enough for the Deployment's own condition Available,
// which by default lets a quarter of them be missing, and not enough for a Memcached's.
const nearlyAll = 3

var _ = Describe("Lab 5", env.Lab(5), func() {
	It("owns its Deployment", env.Check("owner-reference", env.First), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.PodlessNamespace(ctx))
		Eventually(ctx, env.DeploymentOf(m)).Should(beControlledBy(memcached(ctx, m)))
	})

	It("makes a deleted Deployment anew", env.Check("recreates-deployment"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.PodlessNamespace(ctx))
		slow := false
		for range deletions {
			Expect(env.Sleep(ctx, time.Duration(env.Rand().IntN(400))*time.Millisecond)).To(Succeed())
			took := comesBack(ctx, m)
			late := took > restoreTimeout
			if late && slow { // once may be the machine; a manager that polls has just looked, and is as late the next time
				Expect(tooSlow(took)).To(Succeed())
			}
			slow = late
		}
	})

	It("puts back what somebody has changed", env.Check("repairs-drift"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.PodlessNamespace(ctx))
		Expect(m.AwaitStable(ctx)).To(Succeed())
		for _, d := range drifts(m) {
			isRepaired(ctx, m, d)
		}
		isRepairedLater(ctx, m)
	})

	It("keeps metadata of others", env.Check("keeps-foreign-metadata"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.PodlessNamespace(ctx))
		Expect(edit(ctx, m, setMetadata)).To(Succeed())
		Expect(m.Annotate(ctx)).To(Succeed())
		Expect(m.AwaitStable(ctx)).To(Succeed()) // that pass is not to be the one that repairs
		isRepaired(ctx, m, drifts(m)[0])
		Consistently(ctx, env.DeploymentOf(m)).WithTimeout(keptPeriod).Should(keepMetadata())
	})

	It("is Available while all Pods are, and not before", env.Check("available-true"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 1 + m.Size%2 // up to 3 replicas a Deployment, too, wants all of them; available-false is about more
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectDeployment(ctx, m)
		becomesAvailable(ctx, m)
		m.Size++
		Expect(m.SetSpec(ctx, "size", m.Size)).To(Succeed())
		becomesAvailable(ctx, m)
		Expect(m.LosePods(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(lost))
	})

	It("is not Available while a Pod is missing", env.Check("available-false"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = nearlyAll + 1
		Expect(env.Quota(ctx, m.Namespace, nearlyAll)).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectDeployment(ctx, m)
		if env.Run().RealPods {
			Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).Should(match.HaveAvailablePods(nearlyAll))
		}
		staysUnavailable(ctx, m)
		isRepaired(ctx, m, drifts(m)[0]) // from here on the generations of the two objects differ
		m.Size = nearlyAll + 2
		Expect(m.SetSpec(ctx, "size", m.Size)).To(Succeed())
		staysUnavailable(ctx, m)
	})

	It("leaves the clean-up to the garbage collector", env.Check("garbage-collected", SpecPriority(1)), func(ctx SpecContext) {
		ns := env.PodlessNamespace(ctx)
		all := createdAll(ctx, ns, 3)
		gone, kept := all[0], all[1:]
		for _, m := range all {
			Eventually(ctx, env.DeploymentOf(m)).Should(beControlledBy(memcached(ctx, m)))
		}
		since := env.RequestCount()
		Expect(gone.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(gone)).Should(match.BeGone())
		Eventually(ctx, env.DeploymentOf(gone)).WithTimeout(env.CollectTimeout).Should(match.BeCollected("Deployment"))
		Expect(notDeletedBy(since, gone)).To(Succeed())
		for _, m := range kept {
			Expect(m.Delete(ctx, metav1.DeletePropagationOrphan)).To(Succeed())
			isCollected(ctx, m)
		}
		Expect(notDeletedBy(since, kept...)).To(Succeed())
		stayChildless(ctx, createdAll(ctx, ns, 2)...) // which takes half of the quiet period
		Consistently(ctx, deploymentsOf(kept)).WithTimeout(env.QuietPeriod - toTell).Should(keepOne())
	})

	It("respects a Deployment of somebody else", env.Check("foreign-deployment"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 1
		foreign, err := m.CreateForeign(ctx)
		Expect(err).To(Succeed())
		Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).
			Should(match.HaveAvailablePods(m.Size)) // which are not the Memcached's, however many there are
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(reportForeign(ctx, m, foreign))
		n := env.NewMemcached(m.Namespace)
		nobodys, err := n.CreateUncontrolled(ctx)
		Expect(err).To(Succeed())
		Expect(n.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(n)).Should(adoptOrReport(ctx, n, nobodys))
		waitsPatiently(ctx, func() {
			Consistently(ctx, env.DeploymentOf(m)).WithTimeout(env.QuietPeriod).Should(match.Make(func(d *appsv1.Deployment) error {
				return untouched(d, foreign)
			}).Unexplained())
		})
		pass := passesDuring(ctx, func() {
			Expect(m.Annotate(ctx)).To(Succeed())
			Expect(env.Sleep(ctx, time.Second)).To(Succeed())
		})
		if pass.Again > 0 {
			return // it looks again, whenever that is
		}
		Expect(dropDeployment(ctx, m)).To(Succeed())
		limit := freedTimeout
		if !pass.Counted {
			limit = uncountedTimeout
		}
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(limit).
			Should(match.Exist().Because("not-noticed").Unexplained().ByKubernetes(limit))
	})

	It("tells of a refused Deployment, and tries again", env.Check("refused-deployment"), func(ctx SpecContext) {
		m := env.NewMemcached(env.PodlessNamespace(ctx))
		lift, err := env.RefuseDeployments(ctx, m.Namespace)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(toldOfRefusal).Unexplained())
		waitsPatiently(ctx, func() { Expect(env.Sleep(ctx, env.QuietPeriod)).To(Succeed()) })
		Expect(lift(ctx)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
			Should(match.Exist().Because("gave-up").Unexplained().ByKubernetes(env.RetryTimeout))
	})

	It("puts back the status", env.Check("repairs-status"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.PodlessNamespace(ctx))
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
		Expect(m.AwaitStable(ctx)).To(Succeed())
		refused := spoilWhileRefused(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.RetryTimeout).Should(beRepaired(refused).ByKubernetes(env.RetryTimeout))
		keepsWhatComesMeanwhile(ctx, m)
	})

	It("comes to rest", env.Check("status-settles", env.Long), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 1
		Expect(env.Quota(ctx, m.Namespace, 1)).To(Succeed()) // for no other Pod than this one's
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(func(obj *unstructured.Unstructured) error {
			_, err := available(obj)
			return err
		}))
		Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).Should(match.HavePods(m.Size))
		comeAndGo(ctx, m.Namespace) // while the Pod starts
		match.ExpectPods(ctx, m)    // one that starts late would be news
		match.ExpectStable(ctx, m)
		hardlyReconciles(ctx, func() {
			match.ExpectUnchanged(ctx, m, func() { Expect(m.Annotate(ctx)).To(Succeed()) })
		})
		m.Size++ // for which the quota has no Pod: to wait for one is to sleep, too
		Expect(m.SetSpec(ctx, "size", m.Size)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
		match.ExpectStable(ctx, m)
		hardlyReconciles(ctx, func() {
			Expect(m.Annotate(ctx)).To(Succeed())
			Expect(env.Sleep(ctx, env.QuietPeriod)).To(Succeed())
		})
	})
})

// hardlyReconciles wants the manager's own counter of passes to come to rest, for a check that has one Memcached only. act
// takes at least a [env.QuietPeriod] and starts one pass, which finds nothing to do. The counter is evidence: a manager
// without it is not judged by it.
func hardlyReconciles(ctx context.Context, act func()) {
	GinkgoHelper()
	first := passesDuring(ctx, act)
	if first.All <= 1 && first.Again == 0 {
		return
	}
	// Late news may have made more of them, or a conflict. That does not happen twice in a row.
	rest := passesDuring(ctx, func() { Expect(env.Sleep(ctx, env.QuietPeriod)).To(Succeed()) })
	again := passesDuring(ctx, act)
	const expected = "a manager that sleeps while nothing happens"
	switch {
	case rest.All > 0 && again.All > 1:
		Expect(finding.New("polling", expected, "%d passes in %s of rest", rest.All, env.QuietPeriod)).To(Succeed())
	case first.Again > 0 && again.Again > 0:
		Expect(finding.New("polling", expected, "a pass that found nothing to do, and asked for another one (RequeueAfter)")).To(Succeed())
	}
}

// passesDuring are the passes that the manager made during act.
func passesDuring(ctx context.Context, act func()) env.Passes {
	GinkgoHelper()
	made, err := env.Manager().PassesDuring(ctx, func() error {
		act()
		return nil
	})
	Expect(err).To(Succeed())
	return made
}

// patientPasses is how many passes a manager may make in a [env.QuietPeriod] in which it can do nothing but wait. One that
// returns an error is called again after 5 ms, and each pause is twice the one before: that is ten.
const patientPasses = 30

// A manager hurries that asks for another pass this often, and soon: on a slow machine there is no time for many.
const (
	hurriedPasses = 8
	shortPause    = 20 * time.Millisecond
)

// waitsPatiently wants a manager that has met an obstacle not to try again without a pause while act is running.
func waitsPatiently(ctx context.Context, act func()) {
	GinkgoHelper()
	var lasted time.Duration
	made := passesDuring(ctx, func() {
		began := time.Now()
		act()
		lasted = time.Since(began)
	})
	const expected = "at most %d passes in %s for a Memcached that has to wait, and pauses in between"
	hurries := made.Again > hurriedPasses && lasted-made.Took < time.Duration(made.All)*shortPause
	if made.All > patientPasses || hurries {
		Expect(finding.New("busy-waiting", fmt.Sprintf(expected, patientPasses, env.QuietPeriod),
			"%d passes, which took %s of %s", made.All, made.Took.Round(time.Millisecond), lasted.Round(time.Millisecond))).To(Succeed())
	}
}

// A manager that looks after the gone every five seconds does not rest in any [env.QuietPeriod] when there are so many
// of them, and so far apart: without the distance it would look after all at once, and rest in between.
const (
	shortLived = 8
	distance   = 500 * time.Millisecond
)

// comeAndGo has some Memcacheds made and deleted one after the other, with all that is left of them.
func comeAndGo(ctx context.Context, namespace string) {
	GinkgoHelper()
	for range shortLived {
		began := time.Now()
		m := match.ExpectCreated(ctx, namespace)
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		Expect(dropDeployment(ctx, m)).To(Succeed())
		Expect(env.Sleep(ctx, distance-time.Since(began))).To(Succeed())
	}
}

// dropDeployment deletes the Memcached's Deployment, if there is one.
func dropDeployment(ctx context.Context, m env.Memcached) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	if err := client.IgnoreNotFound(env.Admin().Delete(ctx, d, background)); err != nil {
		return fmt.Errorf("delete the Deployment of %s: %w", m, err)
	}
	return nil
}

// createdAll makes n Memcacheds, and waits for all their Deployments.
func createdAll(ctx context.Context, namespace string, n int) []env.Memcached {
	GinkgoHelper()
	var all []env.Memcached
	for range n {
		m := env.NewMemcached(namespace)
		Expect(m.Create(ctx)).To(Succeed())
		all = append(all, m)
	}
	for _, m := range all {
		match.ExpectDeployment(ctx, m)
	}
	return all
}

// isCollected waits for the end of a Memcached that the garbage collector has to see first.
func isCollected(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.CollectTimeout).Should(match.BeGone().ByKubernetes(0))
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
	})
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

// comesBack deletes the Deployment, wants another one in its place, and returns how long that took by the clock of [env.APIServerClock].
func comesBack(ctx context.Context, m env.Memcached) time.Duration {
	GinkgoHelper()
	d, err := m.Deployment(ctx)
	Expect(err).To(Succeed())
	held := false
	another := match.Make(func(now *appsv1.Deployment) error {
		held = now.UID == d.UID
		switch {
		case now.UID == "":
			return fmt.Errorf("there is no Deployment %s yet", m)
		case held:
			return fmt.Errorf("the deleted Deployment %s is still there", m)
		}
		return nil
	}).Unexplained()
	return match.ExpectSoon(ctx, func(ctx context.Context) error {
		return env.Admin().Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}, env.DeploymentOf(m), another, func() error {
		if held {
			return nil
		}
		return finding.New("not-recreated", fmt.Sprintf("a deleted Deployment is back within %s", restoreTimeout), "no Deployment %s", m)
	})
}

func tooSlow(took time.Duration) error {
	return finding.New("too-slow", fmt.Sprintf("a deleted Deployment is back within %s", restoreTimeout),
		"it came back after %s: your operator polls, or waits", took.Round(100*time.Millisecond))
}

// staysUnavailable waits for the condition to say that Pods are missing, and holds it to that: the news of those
// that did start may still be on its way.
func staysUnavailable(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
	Consistently(ctx, env.MemcachedOf(m)).WithTimeout(toTell).Should(match.Make(unavailable).Unexplained())
}

// drift is one edit of a Deployment that its operator has to put back.
type drift struct {
	cause, what string
	change      func(*appsv1.Deployment)
	value       func(*appsv1.Deployment) string
}

// drifts are edits that every style of writing can put back: each changes a value in its place.
func drifts(m env.Memcached) []drift {
	return []drift{
		{
			cause: "replicas-not-repaired", what: "spec.replicas",
			change: func(d *appsv1.Deployment) { d.Spec.Replicas = new(m.Size + 1) },
			value:  func(d *appsv1.Deployment) string { return fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)) },
		},
		{
			cause: "replicas-not-repaired", what: "spec.replicas", // Deployments that are scaled to zero may be left out on purpose
			change: func(d *appsv1.Deployment) { d.Spec.Replicas, d.Labels = new(int32(0)), nil },
			value:  func(d *appsv1.Deployment) string { return fmt.Sprint(ptr.Deref(d.Spec.Replicas, 1)) },
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
			value:  env.CommandLine,
		},
	}
}

// isRepaired makes the edit and waits until the value is what it was, without touching the Memcached.
func isRepaired(ctx context.Context, m env.Memcached, d drift) {
	GinkgoHelper()
	before, err := m.Deployment(ctx)
	Expect(err).To(Succeed())
	_, err = env.Container(before)
	Expect(err).To(Succeed())
	Expect(edit(ctx, m, d.change)).To(Succeed())
	want := d.value(before)
	Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), match.Deployment(func(now *appsv1.Deployment) error {
		if have := d.value(now); have != want {
			return finding.New(d.cause, fmt.Sprintf("%s is put back to %s", d.what, want), "%s", have).
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
	// restartedAt is the annotation of the Pod template with which `kubectl rollout restart` has all Pods made anew.
	restartedAt = "kubectl.kubernetes.io/restartedAt"
)

func setMetadata(d *appsv1.Deployment) {
	if d.Annotations == nil {
		d.Annotations = map[string]string{}
	}
	if d.Labels == nil {
		d.Labels = map[string]string{}
	}
	d.Annotations[foreignKey], d.Labels[foreignKey] = foreignValue, foreignValue
	metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, restartedAt, foreignValue)
}

// keepMetadata wants what [setMetadata] has set.
func keepMetadata() *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		expected := fmt.Sprintf("the %s that somebody else set stays", foreignKey)
		if d.Annotations[foreignKey] != foreignValue {
			return finding.New("annotation-removed", expected, "the annotation is gone")
		}
		if d.Labels[foreignKey] != foreignValue {
			return finding.New("label-removed", expected, "the label is gone")
		}
		if d.Spec.Template.Annotations[restartedAt] != foreignValue {
			return finding.New("restart-undone", "the annotation of `kubectl rollout restart` on the Pod template stays", "the annotation %s is gone", restartedAt)
		}
		return nil
	}).Unexplained()
}

// available reads the condition, which has to be there and to be complete.
func available(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	c, err := env.Condition(obj, "Available")
	if err != nil {
		return nil, err
	}
	expected := "a condition of the type Available in the status"
	switch {
	case c == nil:
		return nil, finding.New("no-condition", expected, "no such condition")
	case c.ObservedGeneration == 0:
		return nil, finding.New("no-observed-generation", expected+", with observedGeneration", "observedGeneration is missing")
	case c.ObservedGeneration > obj.GetGeneration():
		return nil, finding.New("wrong-observed-generation", fmt.Sprintf("observedGeneration %d", obj.GetGeneration()), "observedGeneration %d", c.ObservedGeneration)
	case c.ObservedGeneration != obj.GetGeneration():
		return nil, finding.New("stale-observed-generation", fmt.Sprintf("observedGeneration %d", obj.GetGeneration()), "observedGeneration %d", c.ObservedGeneration)
	case c.Reason == "": // the API server refuses what is no reason, if the conditions are metav1.Conditions
		return nil, finding.New("no-reason", expected+", with a reason", "the reason is empty")
	}
	return c, nil
}

// becomesAvailable wants True, and only when the Deployment has size available replicas. Its Pods are waited
// for as long as Pods take; the operator then has to notice as soon as with anything else.
func becomesAvailable(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	expected := fmt.Sprintf("Available is True while %d of %d replicas are available, and only then", m.Size, m.Size)
	read := env.MemcachedOf(m)
	Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).Should(match.HaveAvailablePods(m.Size).StopIf(func() error {
		obj, err := read(ctx)
		if err != nil {
			return err
		}
		return trueTooEarly(ctx, m, obj, expected)
	}))
	Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(func(obj *unstructured.Unstructured) error {
		c, err := available(obj)
		if err == nil && c.Status != metav1.ConditionTrue {
			err = finding.New("not-true", expected, "Available is %s (%s: %s), and all %d are available", c.Status, c.Reason, c.Message, m.Size)
		}
		return err
	}))
}

// trueTooEarly is a finding when the condition is True while replicas are missing.
func trueTooEarly(ctx context.Context, m env.Memcached, obj *unstructured.Unstructured, expected string) error {
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

func notDeletedBy(since int, all ...env.Memcached) error {
	for _, m := range all {
		for _, w := range m.Writes(since) {
			if w.Resource == "deployments" && strings.HasPrefix(w.Verb, "delete") {
				return finding.New("deleted-by-hand", "the garbage collector removes the Deployment", "your manager did: %s", w)
			}
		}
	}
	return nil
}

// stayChildless deletes Memcacheds as --cascade=foreground does: their Deployments go first, and must not be made anew.
// An operator can hear of the end of a Deployment before it hears that the Memcached is being deleted, and makes
// another one through no fault of its own. So the Memcacheds are held until it must have heard: then they are changed
// once more, without a Deployment, and whoever makes one now knows what it does.
func stayChildless(ctx context.Context, all ...env.Memcached) {
	GinkgoHelper()
	since := env.RequestCount()
	for _, m := range all {
		Expect(m.Hold(ctx)).To(Succeed())
		Expect(m.Delete(ctx, metav1.DeletePropagationForeground)).To(Succeed())
	}
	for _, m := range all {
		Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.CollectTimeout).Should(haveLostItsDependents(all, since))
	}
	Expect(undone(all, since)).To(Succeed())
	Expect(notDeletedBy(since, all...)).To(Succeed())
	for _, m := range all {
		Expect(m.AwaitStable(ctx)).To(Succeed())
	}
	for _, m := range all { // what the manager has made before it heard is taken away, and it looks once more
		Expect(dropDeployment(ctx, m)).To(Succeed())
		Expect(m.Annotate(ctx)).To(Succeed())
	}
	Consistently(ctx, deploymentsOf(all)).WithTimeout(toTell).Should(match.Make(func(made []*appsv1.Deployment) error {
		if len(made) > 0 {
			return finding.New(causeRecreated, childless, "your manager made one, although it had heard of the deletion")
		}
		return nil
	}))
	for _, m := range all {
		Expect(m.Release(ctx)).To(Succeed())
		isCollected(ctx, m)
	}
}

const (
	causeRecreated = "recreated"
	childless      = "no new Deployment for a Memcached that is being deleted with --cascade=foreground"
)

// undoings is how often a manager has to make a Deployment anew to be seen to work against the garbage collector. One
// that has not heard of the deletion does it once.
const undoings = 3

// haveLostItsDependents wants the garbage collector to have done its part of a foreground deletion, unless the manager
// undoes it: that would go on for ever. Children that do not block the deletion of their owner are left for later.
func haveLostItsDependents(all []env.Memcached, since int) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		if slices.Contains(obj.GetFinalizers(), metav1.FinalizerDeleteDependents) {
			return finding.New("memcached-stuck", "the garbage collector deletes the Deployment of "+obj.GetName(), "it has not finished")
		}
		return nil
	}).StopIf(func() error { return undone(all, since) }).Unexplained().ByKubernetes(0)
}

// deploymentsOf reads which of the Memcacheds have a Deployment.
func deploymentsOf(all []env.Memcached) func(context.Context) ([]*appsv1.Deployment, error) {
	var reads []func(context.Context) (*appsv1.Deployment, error)
	for _, m := range all {
		reads = append(reads, env.DeploymentOf(m))
	}
	return func(ctx context.Context) (found []*appsv1.Deployment, err error) {
		for _, read := range reads {
			d, err := read(ctx)
			if err != nil {
				return nil, err
			}
			if d.UID != "" {
				found = append(found, d)
			}
		}
		return found, nil
	}
}

// undone is a finding when the manager has made a Deployment for one of the Memcacheds again and again since.
func undone(all []env.Memcached, since int) error {
	for _, m := range all {
		made := 0
		for _, w := range m.Writes(since) {
			if w.Resource == "deployments" && (w.Verb == "create" || w.Created()) {
				made++
			}
		}
		if made >= undoings {
			return finding.New(causeRecreated, childless, "your manager made one, again and again")
		}
	}
	return nil
}

// keepOne wants one of the orphaned Deployments to stay. An operator that sets its owner reference on
// every pass can lose a race against the garbage collector once, through no fault of its own: it hears
// of the Deployment's change before it hears of the Memcached's deletion.
func keepOne() *match.Matcher {
	return match.Make(func(left []*appsv1.Deployment) error {
		if len(left) == 0 {
			return finding.New("orphan-deleted", "a Deployment that was orphaned with --cascade=orphan stays", "it is gone")
		}
		return nil
	})
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
	})
}

// adoptOrReport wants the Memcached to control the Deployment that nobody controlled, or to say that it is in the way.
func adoptOrReport(ctx context.Context, m env.Memcached, nobodys *appsv1.Deployment) *match.Matcher {
	expected := fmt.Sprintf("the Memcached controls Deployment %s, which nobody controlled, or Available is False with a message that names it", m.Name)
	read := env.DeploymentOf(m)
	return match.Make(func(obj *unstructured.Unstructured) error {
		d, err := read(ctx)
		if err != nil {
			return err
		}
		if d.UID != nobodys.UID {
			return env.Final(finding.New("nobodys", expected, "it was deleted"))
		}
		if metav1.IsControlledBy(d, obj) {
			return nil
		}
		c, err := env.Condition(obj, "Available")
		switch {
		case err != nil:
			return err
		case c == nil:
			return finding.New("nobodys", expected, "no controller, and no condition")
		case d.Generation > 1:
			return finding.New("nobodys", expected, "no controller, and it was changed")
		case c.Status != metav1.ConditionFalse || !strings.Contains(c.Message, m.Name):
			return finding.New("nobodys", expected, "no controller, and Available is %s (%s: %s)", c.Status, c.Reason, c.Message)
		}
		return nil
	})
}

// toldOfRefusal wants a Memcached that has no Deployment to say so.
func toldOfRefusal(obj *unstructured.Unstructured) error {
	const expected = "Available is False while the API server refuses to create the Deployment"
	c, err := available(obj)
	if err != nil && finding.Of(err).Cause == "no-condition" {
		return finding.New("not-told", expected, "no such condition")
	}
	if err == nil && c.Status != metav1.ConditionFalse {
		return finding.New("not-told", expected, "Available is %s (%s: %s)", c.Status, c.Reason, c.Message)
	}
	return err
}

// untouched wants the foreign Deployment as it was made.
func untouched(d, foreign *appsv1.Deployment) error {
	if d.UID == "" {
		return finding.New("deployment-changed", "the foreign Deployment stays as it is", "it is gone")
	}
	for _, ref := range d.OwnerReferences {
		if ref.UID != foreign.OwnerReferences[0].UID {
			return finding.New("stolen", "the foreign Deployment keeps its one owner", "an owner reference to %s %s", ref.Kind, ref.Name)
		}
	}
	if d.Generation != foreign.Generation || d.UID != foreign.UID || !sameMetadata(d, foreign) {
		return finding.New("deployment-changed", "the foreign Deployment stays as it is",
			"it was changed: replicas %d, were %d; labels %v, were %v; annotations %v", ptr.Deref(d.Spec.Replicas, 1), ptr.Deref(foreign.Spec.Replicas, 1), d.Labels, foreign.Labels, d.Annotations)
	}
	return nil
}

// sameMetadata compares what an operator that takes a Deployment for its own writes into its metadata. The deployment
// controller writes annotations, too.
func sameMetadata(d, foreign *appsv1.Deployment) bool {
	for name := range d.Annotations {
		if !strings.HasPrefix(name, "deployment.kubernetes.io/") {
			return false
		}
	}
	return fmt.Sprint(d.Labels) == fmt.Sprint(foreign.Labels) && len(d.OwnerReferences) == len(foreign.OwnerReferences) && len(d.Finalizers) == 0
}
