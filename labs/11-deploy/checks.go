// Package deploy holds the checks of lab 11: the managers run in the cluster, from what kustomize builds of config/default.
package deploy

import (
	"context"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// handOverTimeout is the contract's limit for the other manager to work, once the leader's Pod is deleted.
	handOverTimeout = 8 * time.Second
	// electionTimeout is how long the managers may be without a leader before a check. A lease that nobody gave up ends after 15 s.
	electionTimeout = 20 * time.Second
	// budgetTimeout is how long Kubernetes may take to count the Pods of a budget anew.
	budgetTimeout = 10 * time.Second
	// ignoredPeriod is how long a Memcached is watched that nobody may serve, after another one was served.
	ignoredPeriod = time.Second
	// pollInterval is the pause between two looks at metrics, Pods and leases.
	pollInterval = 200 * time.Millisecond
)

var _ = Describe("Lab 11", env.Lab(11), func() {
	It("has manifests that the API server takes", env.Check("manifests-apply"), func(ctx SpecContext) {
		objects, err := env.DeployManifests(env.Namespace(ctx, env.Quota(0)))
		Expect(err).To(Succeed())
		for _, o := range objects {
			Expect(env.Apply(ctx, o, client.DryRunAll)).To(Succeed())
		}
	})

	It("counts available Pods in a metric", env.Check("metric-follows"), func(ctx SpecContext) {
		m, other := env.NewMemcached(env.Namespace(ctx), 2), env.NewMemcached(env.Namespace(ctx, env.Quota(0)), 1)
		for _, one := range []env.Memcached{m, other} {
			Expect(one.Create(ctx)).To(Succeed())
		}
		expectSeries := func(m env.Memcached, values ...string) {
			GinkgoHelper()
			Eventually(ctx, env.Polled(env.Manager().Metrics)).WithPolling(pollInterval).Should(haveSeries(m, values...))
		}
		expectSeries(other, "0")
		match.ExpectPods(ctx, m)
		expectSeries(m, "2")
		Expect(m.SetSpec(ctx, "size", 1)).To(Succeed())
		expectSeries(m, "1")
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		expectSeries(m)
		expectSeries(other, "0")
	})

	It("watches the namespaces that are named", env.Check("watches-named-namespaces"), func(ctx SpecContext) {
		first, second := env.Namespace(ctx, env.Quota(0)), env.Namespace(ctx, env.Quota(0))
		expectServed := func(namespace string) {
			GinkgoHelper()
			m := env.NewMemcached(namespace)
			Expect(m.Create(ctx)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(match.Exist().Because("not-served"))
		}
		Expect(env.Manager().RestartIn(ctx, first+","+second)).To(Succeed())
		expectServed(first)
		expectServed(second)
		Expect(env.ClusterWide()).To(Succeed())
		Expect(env.Manager().RestartIn(ctx, second)).To(Succeed())
		ignored := env.NewMemcached(first)
		Expect(ignored.Create(ctx)).To(Succeed())
		expectServed(second)
		Expect(env.Sleep(ctx, ignoredPeriod)).To(Succeed())
		d, err := env.DeploymentOf(ignored)(ctx)
		Expect(err).To(Succeed())
		if d.UID != "" {
			Expect(finding.New("not-ignored", "no Deployment in a namespace that WATCH_NAMESPACE does not name", "there is one")).To(Succeed())
		}
	})

	Describe("in the cluster", env.Inside, func() {
		It("runs in a restricted namespace", env.Check("runs-restricted"), func(ctx SpecContext) {
			managers(ctx)
			m := match.ExpectCreated(ctx, env.Namespace(ctx), 2)
			match.ExpectPods(ctx, m)
			Eventually(ctx, env.MemcachedOf(m)).Should(match.HaveCondition("Available", metav1.ConditionTrue))
		})

		It("shows its metrics to those who may see them", env.Check("metrics-guarded"), func(ctx SpecContext) {
			pods := managers(ctx)
			m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)))
			allowed, other := account(ctx, m.Namespace, true), account(ctx, m.Namespace, false)
			asked := func(token string) func(context.Context) (string, error) {
				return env.Polled(func(ctx context.Context) (string, error) { return get(ctx, token, pods) })
			}
			Eventually(ctx, asked("")).WithPolling(pollInterval).Should(haveStatus(401, "without a token", "open"))
			Expect(asked(other)(ctx)).To(haveStatus(403, "for an account without the right", "open"))
			Expect(asked(allowed)(ctx)).To(haveStatus(200, "for an account that may get /metrics", "closed"))
			Eventually(ctx, asked(allowed)).WithTimeout(electionTimeout).WithPolling(pollInterval).Should(haveSeries(m, "0")) // that of the leader
		})

		It("hands over", env.Check("leader-hands-over"), func(ctx SpecContext) {
			pods := managers(ctx)
			m := match.ExpectCreated(ctx, env.Namespace(ctx, env.Quota(0)), 2)
			var leader *corev1.Pod
			Eventually(ctx, func(ctx context.Context) (err error) {
				leader, err = leaderOf(ctx, pods)
				return err
			}).WithTimeout(electionTimeout).WithPolling(pollInterval).Should(Succeed())
			Expect(env.Admin().Delete(ctx, leader)).To(Succeed())
			deleted := time.Now()
			Eventually(ctx, env.Polled(func(ctx context.Context) (string, error) { // until it is gone, it may serve what comes
				now := &corev1.Pod{}
				err := client.IgnoreNotFound(env.Admin().Get(ctx, client.ObjectKeyFromObject(leader), now))
				return now.Name, err
			})).Should(match.Because("not-ended", "the leader ends when its Pod is deleted", BeEmpty()))
			Expect(m.SetSpec(ctx, "size", 4)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).WithTimeout(handOverTimeout - time.Since(deleted)).Should(match.HaveReplicas(4).Because("not-handed-over"))
		})

		It("lets one manager go at a time", env.Check("evicts-one-at-a-time"), func(ctx SpecContext) {
			pods := managers(ctx)
			evict := func(pod corev1.Pod) func(context.Context) (refusal string, err error) {
				return env.Polled(func(ctx context.Context) (string, error) {
					err := env.Admin().SubResource("eviction").Create(ctx, &pod, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}})
					if apierrors.IsTooManyRequests(err) {
						return err.Error(), nil
					}
					return "", err
				})
			}
			Eventually(ctx, evict(pods[0])).WithTimeout(budgetTimeout).WithPolling(pollInterval).Should(match.Because("blocks-drain",
				"one of two Pods may be evicted", BeEmpty()))
			Expect(evict(pods[1])(ctx)).To(match.Because("not-protected", "a PodDisruptionBudget that forbids the eviction of the other Pod", Not(BeEmpty())))
		})
	})
})

// managers deploys the operator, waits until its managers are available, and returns their Pods, two or more.
func managers(ctx context.Context) (pods []corev1.Pod) {
	GinkgoHelper()
	d, err := env.Deploy(ctx)
	Expect(err).To(Succeed())
	match.ExpectPods(ctx, d)
	Eventually(ctx, func(ctx context.Context) ([]corev1.Pod, error) {
		all, err := d.Pods(ctx)
		pods = slices.DeleteFunc(all, func(p corev1.Pod) bool {
			return p.DeletionTimestamp != nil || !slices.ContainsFunc(p.Status.Conditions, isReady)
		})
		return pods, err
	}).WithPolling(pollInterval).Should(HaveLen(int(d.Size))) // the Deployment may not have counted yet what the check before has deleted
	return pods
}

func isReady(c corev1.PodCondition) bool {
	return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
}

// leaderOf is the Pod that a Lease beside it names as its holder.
func leaderOf(ctx context.Context, pods []corev1.Pod) (*corev1.Pod, error) {
	leases := &coordinationv1.LeaseList{}
	if err := env.Admin().List(ctx, leases, client.InNamespace(pods[0].Namespace)); err != nil {
		return nil, err
	}
	for _, lease := range leases.Items {
		for _, pod := range pods {
			if strings.Contains(ptr.Deref(lease.Spec.HolderIdentity, ""), pod.Name) {
				return &pod, nil
			}
		}
	}
	return nil, finding.New("no-election", "a Lease in the namespace of the managers, which one of their Pods holds",
		"%d Leases, and no Pod's name in one", len(leases.Items))
}
