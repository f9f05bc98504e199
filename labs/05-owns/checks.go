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
	// long they are waited for, so that they hear that they poll.
	restoreTimeout, lateTimeout = 2 * time.Second, 6 * time.Second
	// freedTimeout is the contract's limit for a Memcached to get its own Deployment when the one with its name is gone.
	freedTimeout = 10 * time.Second
	// nearlyAll is how many of four Pods a quota admits: enough for the Deployment's own condition Available, which by default
	// lets a quarter of them be missing, and not enough for a Memcached's.
	nearlyAll = 3
	// patience is how long a manager that has to wait is listened to, and patientPasses how many passes it may make meanwhile.
	// One that returns an error is called again after 5 ms, and each pause is twice the one before: that is nine.
	patience, patientPasses = 1500 * time.Millisecond, 15
)

var _ = Describe("Lab 5", env.Lab(5), func() {
	It("owns its Deployment", env.Check("owner-reference", env.First), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Eventually(ctx, env.DeploymentOf(m)).Should(beControlledBy(memcached(ctx, m)))
	})

	It("creates a deleted Deployment again", env.Check("recreates-deployment"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		var took [3]time.Duration
		for i := range took {
			Expect(env.Sleep(ctx, time.Duration(env.Rand().IntN(400))*time.Millisecond)).To(Succeed())
			took[i] = recreated(ctx, m)
		}
		// One late answer may be the machine's. An operator that polls has just looked, and is late both times.
		Expect(inTime(min(took[1], took[2]))).To(Succeed())
	})

	It("repairs what others change", env.Check("repairs-drift"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		for _, d := range drifts(m) {
			atRest(ctx, m) // a pass that is under way must not be the one that repairs
			repairs(ctx, m, d)
		}
		atRest(ctx, m)
		Expect(faults.RefuseWrites(ctx, m.Namespace, apiproxy.NoDeployments, env.FirstTry, 1, func() error {
			if err := edit(ctx, m, func(d *appsv1.Deployment) { d.Spec.Replicas = new(m.Size + 1) }); err != nil {
				return err
			}
			return m.WaitIdle(ctx) // the deployment controller's news of the edit come after it
		})).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
			Should(match.HaveReplicas(m.Size).Because("gave-up").KeepCause().ByKubernetes(env.RetryTimeout))
	})

	It("keeps metadata of others", env.Check("keeps-foreign-metadata"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Expect(edit(ctx, m, setMetadata)).To(Succeed())
		Expect(m.Annotate(ctx)).To(Succeed())
		atRest(ctx, m)
		repairs(ctx, m, drifts(m)[0])
		Consistently(ctx, env.DeploymentOf(m)).WithTimeout(stayPeriod).Should(keepMetadata())
	})

	It("reports whether all Pods are available", env.Check("available-condition"), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = nearlyAll + 1
		Expect(env.Quota(ctx, m.Namespace, nearlyAll)).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectDeployment(ctx, m)
		Eventually(ctx, env.RolloutOf(m)).WithTimeout(env.PodsTimeout).Should(match.HaveAvailablePods(nearlyAll))
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
		Consistently(ctx, env.MemcachedOf(m)).WithTimeout(stayPeriod).Should(match.Make(unavailable).KeepCause())
		Expect(env.Admin().DeleteAllOf(ctx, &corev1.ResourceQuota{}, client.InNamespace(m.Namespace))).To(Succeed())
		repairs(ctx, m, drifts(m)[0]) // makes the Pods anew, and lets the generations of the two objects differ
		match.ExpectPods(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(available))
		Expect(m.DeletePods(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(lost))
		Expect(m.SetSpec(ctx, "size", m.Size+1)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
	})

	It("leaves the deletion to the garbage collector", env.Check("garbage-collected", SpecPriority(1)), func(ctx SpecContext) {
		namespace := env.NamespaceWithoutPods(ctx)
		m := match.ExpectCreated(ctx, namespace)
		since := env.RequestCount()
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.CollectTimeout).Should(match.BeCollected("Deployment"))
		Expect(notDeletedBy(m, since)).To(Succeed())
		staysDeleted(ctx, match.ExpectCreated(ctx, namespace))
	})

	It("respects a Deployment of somebody else", env.Check("foreign-deployment"), func(ctx SpecContext) {
		m := env.NewMemcached(env.NamespaceWithoutPods(ctx))
		foreign, err := m.CreateForeign(ctx)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(reportOccupied(ctx, m, foreign))
		n := env.NewMemcached(m.Namespace)
		unowned, err := n.CreateUnowned(ctx)
		Expect(err).To(Succeed())
		Expect(n.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(n)).Should(reportOccupied(ctx, n, unowned))
		looksAgain := waitsPatiently(ctx, func() {
			Expect(m.Annotate(ctx)).To(Succeed())
			Consistently(ctx, env.DeploymentOf(m)).WithTimeout(patience).Should(match.Make(func(d *appsv1.Deployment) error {
				return untouched(d, foreign)
			}).KeepCause())
		})
		if looksAgain {
			return // whenever that is
		}
		Expect(dropDeployment(ctx, m)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(freedTimeout).
			Should(match.Exist().Because("not-noticed").KeepCause().ByKubernetes(freedTimeout))
	})

	It("reports a refused Deployment, and tries again", env.Check("refused-deployment"), func(ctx SpecContext) {
		m := env.NewMemcached(env.NamespaceWithoutPods(ctx))
		lift, err := env.RefuseDeployments(ctx, m.Namespace)
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(reportsRefusal).KeepCause())
		waitsPatiently(ctx, func() { Expect(env.Sleep(ctx, patience)).To(Succeed()) })
		Expect(lift(ctx)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
			Should(match.Exist().Because("gave-up").KeepCause().ByKubernetes(env.RetryTimeout))
	})

	It("repairs the status", env.Check("repairs-status"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
		atRest(ctx, m)
		refused := overwriteWhileRefused(ctx, m)
		Eventually(ctx, env.MemcachedOf(m)).WithTimeout(env.RetryTimeout).
			Should(beRepaired(refused).ByKubernetes(env.RetryTimeout))
	})

	It("comes to rest", env.Check("status-settles", env.Long), func(ctx SpecContext) {
		m := env.NewMemcached(env.Namespace(ctx))
		m.Size = 1
		Expect(env.Quota(ctx, m.Namespace, 1)).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectDeployment(ctx, m)
		match.ExpectPods(ctx, m)
		waiting := match.ExpectCreated(ctx, m.Namespace) // the quota admits no Pod of this one
		Eventually(ctx, env.MemcachedOf(waiting)).Should(match.Make(unavailable))
		match.ExpectStable(ctx, waiting)
		match.ExpectStable(ctx, m)
		sleeps(ctx, 2, func() {
			Expect(waiting.Annotate(ctx)).To(Succeed())
			match.ExpectUnchanged(ctx, m, func() { Expect(m.Annotate(ctx)).To(Succeed()) })
		})
	})

	It("survives a crash", env.Check("survives-a-crash"), func(ctx SpecContext) {
		m := env.NewMemcached(env.NamespaceWithoutPods(ctx))
		killed, err := faults.KillAfter(func(r apiproxy.Request) bool {
			return r.Resource == env.Deployments && r.Namespace == m.Namespace && r.Created()
		})
		Expect(err).To(Succeed())
		Expect(m.Create(ctx)).To(Succeed())
		match.ExpectDeployment(ctx, m)
		Eventually(killed).WithContext(ctx).Should(BeClosed())
		Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(beControlledBy(memcached(ctx, m)).Because("owner-not-set"))
		repairs(ctx, m, drifts(m)[0])
		survivesRecreation(ctx, match.ExpectCreated(ctx, m.Namespace))
	})
})

// atRest waits until the Memcached and its Deployment have not changed for a moment.
func atRest(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Expect(m.WaitIdle(ctx)).To(Succeed())
}

// recreated deletes the Deployment, waits for another one in its place, and returns how long that took.
func recreated(ctx context.Context, m env.Memcached) time.Duration {
	GinkgoHelper()
	old, err := m.Deployment(ctx)
	Expect(err).To(Succeed())
	began := time.Now()
	Expect(dropDeployment(ctx, m)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(lateTimeout).Should(match.Make(func(now *appsv1.Deployment) error {
		if now.UID == "" || now.UID == old.UID {
			return finding.New("not-recreated", fmt.Sprintf("a deleted Deployment is back within %s", restoreTimeout), "no Deployment %s", m)
		}
		return nil
	}).KeepCause().ByKubernetes(lateTimeout)) // a manager that polls does nothing for a while
	return time.Since(began)
}

func inTime(took time.Duration) error {
	if took <= restoreTimeout {
		return nil
	}
	return finding.New("too-slow", fmt.Sprintf("a deleted Deployment is back within %s", restoreTimeout),
		"it came back after %s: your operator polls, or waits", took.Round(100*time.Millisecond))
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

// waitsPatiently wants few passes of a manager that can do nothing but wait while act runs. It says whether the manager has
// asked for another pass (RequeueAfter).
func waitsPatiently(ctx context.Context, act func()) (looksAgain bool) {
	GinkgoHelper()
	made := passesDuring(ctx, act)
	if made.All > patientPasses {
		Expect(finding.New("busy-waiting", fmt.Sprintf("at most %d passes in %s for a Memcached that has to wait", patientPasses, patience),
			"%d passes", made.All)).To(Succeed())
	}
	return made.Again > 0
}

// sleeps wants no passes but those that act starts, which find nothing to do. The manager's own counter is evidence: a
// manager without one is not judged by it.
func sleeps(ctx context.Context, starts int, act func()) {
	GinkgoHelper()
	var made env.Passes
	for range 2 { // late news, or a conflict, may have made more passes, and not twice in a row
		if made = passesDuring(ctx, act); made.All <= starts && made.Again == 0 {
			return
		}
	}
	Expect(finding.New("polling", fmt.Sprintf("at most %d passes while nothing happens, and none that asks for another one (RequeueAfter)", starts),
		"%d passes, %d of which asked for another one", made.All, made.Again)).To(Succeed())
}

// survivesRecreation deletes a Memcached and creates another one of the same name while the API server refuses writes of
// Deployments. In the end, the new one has to control a Deployment.
func survivesRecreation(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	atRest(ctx, m)
	Expect(faults.RefuseWrites(ctx, m.Namespace, apiproxy.NoDeployments, env.FirstTry, 1, func() error {
		if err := m.Delete(ctx, metav1.DeletePropagationBackground); err != nil {
			return err
		}
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		return m.Create(ctx)
	})).To(Succeed())
	since, now := env.RequestCount(), memcached(ctx, m)
	expected := fmt.Sprintf("Memcached %s, which was deleted and created again, controls a Deployment", m.Name)
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.CollectTimeout).Should(match.Make(func(d *appsv1.Deployment) error {
		switch {
		case d.UID != "" && d.DeletionTimestamp == nil && metav1.IsControlledBy(d, now):
			return nil
		case created(m, since) >= undoings:
			return env.Final(finding.New("earlier-owner", expected, "the garbage collector deletes each Deployment: its owner is the earlier Memcached"))
		case d.UID == "":
			return finding.New("earlier-owner", expected, "there is no Deployment")
		}
		return finding.New("earlier-owner", expected, "the Deployment has another controller, or none")
	}).KeepCause().ByKubernetes(freedTimeout))
}
