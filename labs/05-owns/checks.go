// Package owns holds the checks of lab 5: the operator notices what happens to its Deployment, reports it in the status, and
// respects what others own.
package owns

import (
	"context"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// stayPeriod is how long something has to stay as it is. An operator that changes it does so within milliseconds.
	stayPeriod = time.Second
	// restoreTimeout is the contract's limit for a deleted Deployment to be back. Operators that poll miss it; lateTimeout is how
	// long they are waited for once, so that they hear that they poll.
	restoreTimeout, lateTimeout = 2 * time.Second, 6 * time.Second
	// freedTimeout is the contract's limit for a Memcached to get its own Deployment when the one with its name is gone.
	freedTimeout = 10 * time.Second
	// collectTimeout is how long garbage collection may take. The collector looks for new kinds every 30 s only, so a Memcached that is
	// deleted soon after its CRD was installed is noticed late.
	collectTimeout = 45 * time.Second
	// nearlyAll is how many of four Pods a quota admits: enough for the Deployment's own condition Available, which by default
	// lets a quarter of them be missing, and not enough for a Memcached's.
	nearlyAll = 3
	// patience is how long a manager that has to wait is listened to, and patientPasses how many passes it may make meanwhile.
	// One that returns an error is called again after 5 ms, and each pause is twice the one before: that is nine.
	patience, patientPasses, waiting = 1500 * time.Millisecond, 15, "in 1.5 s for a Memcached that has to wait"
	// idlePasses is how many passes two edits of an annotation may start: each starts one, and late news or a conflict another.
	idlePasses = 5
)

var _ = Describe("Lab 5", env.Lab(5), func() {
	It("owns its Deployment", env.Check("owner-reference"), func(ctx SpecContext) {
		expectOwned(ctx, env.Namespace(ctx, env.Quota(0)))
	})

	It("creates a deleted Deployment again", env.Check("recreates-deployment"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		recreate(ctx, m, lateTimeout, "not-recreated")
		recreate(ctx, m, restoreTimeout, "too-slow") // an operator that polls has just looked
	})

	It("repairs what others change", env.Check("repairs-drift"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Expect(m.WaitIdle(ctx)).To(Succeed()) // a pass that is under way must not be the one that repairs
		for _, d := range drifts(m) {
			repairs(ctx, m, d)
		}
		refusingWrites(ctx, m, "deployments", func() error { return m.EditDeployment(ctx, drifts(m)[0].change) })
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
			Should(match.HaveReplicas(m.Size).Because("gave-up").KeepCause().ByKubernetes(env.RetryTimeout))
	})

	It("keeps metadata of others", env.Check("keeps-foreign-metadata"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Expect(m.EditDeployment(ctx, setMetadata)).To(Succeed())
		Expect(m.Annotate(ctx)).To(Succeed())
		repairs(ctx, m, drifts(m)[0])
		Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(keepMetadata())
	})

	It("reports whether all Pods are available", env.Check("available-condition"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(nearlyAll)), nearlyAll+1)
		few := m
		few.Size = nearlyAll
		match.ExpectPods(ctx, few)
		Eventually(ctx, env.MemcachedOf(m)).Should(beUnavailable())
		Consistently(ctx, env.MemcachedOf(m)).WithTimeout(stayPeriod).Should(beUnavailable().KeepCause())
		repairs(ctx, m, drifts(m)[0])         // from here on the generations of the two objects differ
		Expect(m.WaitIdle(ctx)).To(Succeed()) // and from here on they stay as they are
		inNamespace := client.InNamespace(m.Namespace)
		Expect(env.Admin().DeleteAllOf(ctx, &corev1.ResourceQuota{}, inNamespace)).To(Succeed())
		Expect(env.Admin().DeleteAllOf(ctx, &corev1.Pod{}, inNamespace, client.GracePeriodSeconds(0))).To(Succeed())
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(report(metav1.ConditionTrue, "not-true", "while all Pods are available"))
		lift := env.KeepPods(ctx, m.Namespace)
		m.Size--
		Expect(m.SetSpec(ctx, "size", m.Size)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(report(metav1.ConditionTrue, "surplus-unavailable", "while more Pods than that are available"))
		Expect(lift(ctx)).To(Succeed())
		Expect(m.DeletePods(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(report(metav1.ConditionFalse, "stays-true", "again after all Pods were lost"))
		Expect(m.SetSpec(ctx, "size", m.Size+1)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(beUnavailable())
	})

	It("leaves the deletion to the garbage collector", env.Check("garbage-collected", SpecPriority(1)), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		m := expectOwned(ctx, namespace) // else nothing is collected
		since := env.RequestCount()
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(collectTimeout).
			Should(beMissing("not-collected", "the Deployment goes after its Memcached was deleted").ByKubernetes(0))
		Expect(writes(m, since, deletesDeployment)).To(match.Because("deleted-by-hand", "the garbage collector removes the Deployment", BeZero()))
		staysDeleted(ctx, expectOwned(ctx, namespace))
	})

	It("respects a Deployment of somebody else", env.Check("foreign-deployment"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		m, n := env.NewMemcached(namespace), env.NewMemcached(namespace)
		foreign, err := m.CreateForeign(ctx)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(reportOccupied(ctx, m, foreign))
		unowned, err := n.CreateUnowned(ctx)
		Expect(err).To(Succeed())
		Expect(n.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(n)).Should(reportOccupied(ctx, n, unowned))
		again := expectFewPasses(ctx, patientPasses, "busy-waiting", waiting, func() {
			Expect(m.Annotate(ctx)).To(Succeed())
			Consistently(ctx, env.DeploymentOf(m)).WithTimeout(patience).Should(beUntouched(foreign))
		})
		if again > 0 {
			return // it looks again, whenever that is
		}
		Expect(dropDeployment(ctx, m)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(freedTimeout).
			Should(match.Exist().Because("not-noticed").KeepCause().ByKubernetes(freedTimeout))
	})

	It("reports a refused Deployment, and tries again", env.Check("refused-deployment"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
		lift := env.RefuseDeployments(ctx, m.Namespace)
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).
			Should(report(metav1.ConditionFalse, "not-told", "while the API server refuses to create the Deployment").KeepCause())
		expectFewPasses(ctx, patientPasses, "busy-waiting", waiting, func() { Expect(env.Sleep(ctx, patience)).To(Succeed()) })
		Expect(lift(ctx)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
			Should(match.Exist().Because("gave-up").KeepCause().ByKubernetes(env.RetryTimeout))
	})

	It("repairs the status", env.Check("repairs-status"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
		Eventually(ctx, env.MemcachedOf(m)).Should(beUnavailable())
		Expect(m.WaitIdle(ctx)).To(Succeed())
		since := env.RequestCount()
		// The edit makes a pass, whatever the manager does not want to hear of. It is one of a label, because an annotation
		// gives the Deployment another generation, which is news for a status, too.
		refusingWrites(ctx, m, "memcacheds", func() error {
			if err := overwrite(ctx, m); err != nil {
				return err
			}
			return m.EditDeployment(ctx, func(d *appsv1.Deployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, foreignKey, foreignValue) })
		})
		refused := writes(m, since, func(r apiproxy.Request) bool { return r.Disturbed })
		repaired := beRepaired(refused)
		if refused > 0 { // the contract lets it wait before it tries again
			repaired.ByKubernetes(env.RetryTimeout)
		}
		Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.RetryTimeout).Should(repaired)
	})

	It("comes to rest", env.Check("status-settles", env.Long), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(1)), 1)
		match.ExpectPods(ctx, m)
		short := match.ExpectCreated(ctx, m.Namespace) // the quota admits no Pod of this one
		Eventually(ctx, env.MemcachedOf(short)).Should(beUnavailable())
		match.ExpectStable(ctx, m)
		again := expectFewPasses(ctx, idlePasses, "polling", "while nothing happens", func() {
			Expect(short.Annotate(ctx)).To(Succeed())
			match.ExpectUnchanged(ctx, m, func() { Expect(m.Annotate(ctx)).To(Succeed()) })
		})
		Expect(again).To(match.Because("polling", "no pass that asks for another one (RequeueAfter) while nothing happens", BeZero()))
	})

	It("survives a crash", env.Check("survives-a-crash"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
		killed, err := faults.KillAfter(func(r apiproxy.Request) bool { return r.Namespace == m.Namespace && createsDeployment(r) })
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectDeployment(ctx, m)
		Eventually(killed).WithContext(ctx).Should(BeClosed())
		Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(beControlledBy(memcached(ctx, m)).Because("owner-not-set"))
		repairs(ctx, m, drifts(m)[0])
		survivesRecreation(ctx, expectOwned(ctx, m.Namespace)) // one that this process of the manager has created
	})
})

// expectOwned makes a Memcached, and waits until it controls its Deployment.
func expectOwned(ctx context.Context, namespace string) env.Memcached {
	GinkgoHelper()
	m := match.ExpectCreated(ctx, namespace)
	Eventually(ctx, env.DeploymentOf(m)).Should(beControlledBy(memcached(ctx, m)))
	return m
}

// recreate deletes the Deployment, and waits for another one in its place. cause is that of none.
func recreate(ctx context.Context, m env.Memcached, timeout time.Duration, cause string) {
	GinkgoHelper()
	old, err := m.Deployment(ctx)
	Expect(err).To(Succeed())
	Expect(dropDeployment(ctx, m)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(timeout).Should(match.Make(func(now *appsv1.Deployment) error {
		if now.UID == "" || now.UID == old.UID {
			return finding.New(cause, fmt.Sprintf("a deleted Deployment is back within %s", restoreTimeout), "no Deployment %s after %s", m, timeout)
		}
		return nil
	}).KeepCause().ByKubernetes(timeout)) // a manager that polls does nothing for a while
}

// dropDeployment deletes the Memcached's Deployment, if there is one.
func dropDeployment(ctx context.Context, m env.Memcached) error {
	d := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name}}
	return client.IgnoreNotFound(env.Admin().Delete(ctx, d, client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// refusingWrites has the API server refuse the manager's writes of a resource while act runs and for as long as it makes news.
// Otherwise this news would repair what the first try could not.
func refusingWrites(ctx context.Context, m env.Memcached, resource string, act func() error) {
	GinkgoHelper()
	Expect(faults.RefuseWrites(ctx, m.Namespace, resource, func() error {
		if err := act(); err != nil {
			return err
		}
		return m.WaitIdle(ctx)
	})).To(Succeed())
}

// expectFewPasses wants at most so many passes of the manager while act runs, and returns how many of them asked for another one. The
// manager's own counter is evidence: a manager without one is not judged by it.
func expectFewPasses(ctx context.Context, most int, cause, while string, act func()) (again int) {
	GinkgoHelper()
	made, err := env.Manager().PassesDuring(ctx, func() error {
		act()
		return nil
	})
	Expect(err).To(Succeed())
	Expect(made.All).To(match.Because(cause, fmt.Sprintf("at most %d passes %s", most, while), BeNumerically("<=", most)))
	return made.Again
}

// survivesRecreation deletes a Memcached and creates another one of the same name while the API server refuses writes of
// Deployments. In the end, the new one has to control a Deployment.
func survivesRecreation(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Expect(faults.RefuseWrites(ctx, m.Namespace, "deployments", func() error {
		if err := m.Delete(ctx, metav1.DeletePropagationBackground); err != nil {
			return err
		}
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		return m.Create(ctx)
	})).To(Succeed())
	since, now := env.RequestCount(), memcached(ctx, m)
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(collectTimeout).Should(match.Make(func(d *appsv1.Deployment) error {
		if d.UID != "" && d.DeletionTimestamp == nil && metav1.IsControlledBy(d, now) {
			return nil
		}
		f := finding.New("earlier-owner", fmt.Sprintf("Memcached %s, which was deleted and created again, controls a Deployment", m.Name),
			"there is none that it controls; owner references: %v", d.OwnerReferences)
		if writes(m, since, createsDeployment) >= 3 { // the garbage collector deletes each of them: its owner is the earlier Memcached
			return StopTrying("nothing will change").Wrap(f)
		}
		return f
	}).KeepCause().ByKubernetes(freedTimeout))
}
