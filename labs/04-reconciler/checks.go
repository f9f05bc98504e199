// Package reconciler holds the checks of lab 4: the Deployment of a Memcached follows its spec.
package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

var _ = Describe("Lab 4", env.Lab(4), func() {
	It("creates the Deployment of the spec", env.Check("creates-deployment", env.First), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(
			match.HaveReplicas(m.Size), runImage("wrong-image", env.Run().MemcachedImage), match.HavePort(m.Port)))
		bare := env.NewMemcached(m.Namespace)
		bare.Size, bare.Port = 0, 0
		Expect(bare.Create(ctx)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(bare)).Should(match.HaveReplicas(1).Because("default-ignored"))
	})

	It("has Pods that run", env.Check("pods-run"), func(ctx SpecContext) {
		m := createdWithPods(ctx, 2) // a Pod is about a core-second
		match.ExpectPods(ctx, m)
		Consistently(ctx, env.PodsOf(m)).WithTimeout(stayUpPeriod).Should(match.KeepRunning())
		Expect(probesCanSucceed(match.ExpectDeployment(ctx, m), m.Port)).To(Succeed())
	})

	It("has memcached answer in each Pod", env.Check("answers-version"), func(ctx SpecContext) {
		everyPodAnswers(ctx, createdWithPods(ctx, 2)) // every Pod, and no more of them to start than it takes
	})

	It("follows spec.size, up and down", env.Check("follows-size"), func(ctx SpecContext) {
		a, b := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx)), match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Eventually(ctx, env.DeploymentOf(a)).Should(match.HaveReplicas(a.Size))
		Eventually(ctx, env.DeploymentOf(b)).Should(match.HaveReplicas(b.Size))
		Expect(errors.Join(a.Relabel(ctx), b.Relabel(ctx))).To(Succeed()) // a selector that has these labels cannot follow
		for range 2 {
			followBothWays(ctx, a, b)
			a, b = b, a
		}
	})

	It("follows spec.containerPort", env.Check("follows-port"), func(ctx SpecContext) {
		namespace := env.NamespaceWithoutPods
		if env.Run().RealPods {
			namespace = env.Namespace
		}
		m := env.NewMemcached(namespace(ctx))
		m.Size = 1
		Expect(m.Create(ctx)).To(Succeed())
		before := match.ExpectDeployment(ctx, m)
		m.Port++
		Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), haveAnotherPort(before, m.Port-1)))
		if env.Run().RealPods {
			everyPodAnswers(ctx, m)
		}
		first := m.Port
		for _, port := range []int32{memcachedPort, first} { // the default may be told or left out, and it has to go again
			before, old := match.ExpectDeployment(ctx, m), m.Port
			m.Port = port
			Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
			Eventually(ctx, env.DeploymentOf(m)).Should(haveAnotherPort(before, old))
			if env.Run().RealPods && port == memcachedPort {
				everyPodAnswers(ctx, m)
			}
		}
	})

	It("keeps Memcacheds apart", env.Check("isolates-instances"), func(ctx SpecContext) {
		one, other := env.NamespaceWithoutPods(ctx), env.NamespaceWithoutPods(ctx)
		a, b := env.NewMemcached(one), env.NewMemcached(one)
		namesake := env.NewMemcached(other)
		a.Name = env.LongName()
		b.Name = a.Name[:len(a.Name)-1] + "0" // whoever shortens names takes it for a
		namesake.Name, a.Size, b.Size, namesake.Size = a.Name, 2, 3, 4
		Expect(a.Create(ctx)).To(Succeed())
		Expect(b.Create(ctx)).To(Succeed())
		haveTheirReplicas(ctx, "missing-deployment", a, b)
		pickTheirOwn(ctx, a, b)
		Expect(namesake.Create(ctx)).To(Succeed()) // last, so that it is the one that is taken for the other
		haveTheirReplicas(ctx, "missing-namesake", namesake)
		Expect(a.WaitIdle(ctx)).To(Succeed())
		a.Size = 5
		Expect(a.SetSpec(ctx, "size", a.Size)).To(Succeed())
		haveTheirReplicas(ctx, "missing-deployment", a, b, namesake)
	})

	It("is quiet after a deletion", env.Check("deletion-quiet"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		before := match.ExpectDeployment(ctx, m)
		failing := failuresOf(m)
		Expect(m.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
		Consistently(failing).WithTimeout(failurePeriod).WithPolling(100 * time.Millisecond).Should(Succeed())
		Expect(notRecreated(ctx, m, before)).To(Succeed())
	})

	It("catches up after it was stopped", env.Check("catches-up"), func(ctx SpecContext) {
		namespace := env.NamespaceWithoutPods(ctx)
		changed := match.ExpectCreated(ctx, namespace)
		Eventually(ctx, env.DeploymentOf(changed)).Should(match.HaveReplicas(changed.Size))
		late := env.NewMemcached(namespace)
		Expect(env.Manager().WhileStopped(ctx, func() error {
			changed.Size, changed.Port = 5, changed.Port+1
			return errors.Join(changed.SetSpec(ctx, "size", changed.Size), changed.SetSpec(ctx, "containerPort", changed.Port), late.Create(ctx))
		})).To(Succeed())
		Eventually(ctx, env.DeploymentOf(changed)).Should(match.HaveReplicas(5).Because("not-caught-up"))
		Eventually(ctx, env.DeploymentOf(changed)).Should(match.HavePort(changed.Port).Because("port-not-caught-up"))
		Eventually(ctx, env.DeploymentOf(late)).Should(match.Exist().Because("not-created"))
	})

	It("runs the image of MEMCACHED_IMAGE", env.Check("follows-image"), func(ctx SpecContext) {
		m := match.ExpectCreated(ctx, env.NamespaceWithoutPods(ctx))
		Eventually(ctx, env.DeploymentOf(m)).Should(runImage("image-hard-coded", env.Run().MemcachedImage))
		before := match.ExpectDeployment(ctx, m)
		image := "operator-lab.local/memcached:" + env.RandomName()
		Expect(env.Manager().Restart(ctx, image)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(match.BeSameAs(before), runImage("image-ignored", image)))
	})

	It("writes nothing when there is nothing to do", env.Check("nothing-to-do", env.Long), func(ctx SpecContext) {
		m := createdWithPods(ctx, 1)
		match.ExpectPods(ctx, m)
		match.ExpectStable(ctx, m)
		match.ExpectUnchanged(ctx, m, func() {
			Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
			for range edits { // an order that is drawn anew on each pass can be the same twice
				Expect(m.Annotate(ctx)).To(Succeed())
				Expect(env.Sleep(ctx, passTime)).To(Succeed())
			}
		})
	})
})

// createdWithPods makes one with so many Pods, and waits for its Deployment.
func createdWithPods(ctx context.Context, size int32) env.Memcached {
	GinkgoHelper()
	m := env.NewMemcached(env.Namespace(ctx))
	m.Size = size
	Expect(m.Create(ctx)).To(Succeed())
	match.ExpectDeployment(ctx, m)
	return m
}

// followBothWays makes one Memcached big and the other one small, and wants both Deployments to follow. An operator that
// knows one direction only needs another hint than one that never changes what it has created.
func followBothWays(ctx context.Context, grows, shrinks env.Memcached) {
	GinkgoHelper()
	small, big := match.ExpectDeployment(ctx, grows), match.ExpectDeployment(ctx, shrinks)
	Expect(grows.SetSpec(ctx, "size", 5)).To(Succeed())
	Expect(shrinks.SetSpec(ctx, "size", 1)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(grows)).Should(SatisfyAll(match.BeSameAs(small), follow(ctx, 5, "not-scaled-up", shrinks, 1)))
	Eventually(ctx, env.DeploymentOf(shrinks)).Should(SatisfyAll(match.BeSameAs(big), follow(ctx, 1, "not-scaled-down", grows, 5)))
}

// follow wants so many replicas. The cause is another one when the Deployment of the other Memcached has not followed either.
func follow(ctx context.Context, size int32, cause string, other env.Memcached, otherSize int32) *match.Matcher {
	wanted, others := match.HaveReplicas(size), env.DeploymentOf(other)
	return match.Deployment(func(d *appsv1.Deployment) error {
		err := wanted.Judge(d)
		if err == nil {
			return nil
		}
		if o, readErr := others(ctx); readErr == nil && (o.UID == "" || ptr.Deref(o.Spec.Replicas, 1) != otherSize) {
			return finding.Of(err).WithCause("not-scaled")
		}
		return finding.Of(err).WithCause(cause)
	})
}

// runImage wants the container to run an image.
func runImage(cause, want string) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		c, err := env.Container(d)
		if err != nil {
			return err
		}
		if c.Image != want {
			return finding.New(cause, "image "+want+", as MEMCACHED_IMAGE says", "image %s", c.Image).
				With(finding.Field{Path: "spec.template.spec.containers[" + c.Name + "].image", Want: want, Have: c.Image})
		}
		return nil
	})
}

// haveAnotherPort wants another generation of a Deployment, in which memcached is told nothing of the old port.
func haveAnotherPort(before *appsv1.Deployment, old int32) *match.Matcher {
	return match.Deployment(func(d *appsv1.Deployment) error {
		if d.Generation == before.Generation {
			return finding.New("port-ignored", "a Deployment that was changed, as spec.containerPort was", "the Deployment as it was before")
		}
		if env.TellsPort(d, old) {
			return finding.New("port-ignored", fmt.Sprintf("memcached is told nothing of the old port %d", old), "%s", env.CommandLine(d))
		}
		return nil
	})
}

// everyPodAnswers asks each Pod of a Deployment whose roll-out has ended.
func everyPodAnswers(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	match.ExpectPods(ctx, m)
	answers := func(ctx context.Context, pod corev1.Pod) error { return env.AskVersion(ctx, pod, m.Port) }
	for _, pod := range match.ExpectEachPod(ctx, m, answers) {
		Expect(env.Reachable(ctx, pod, m.Port)).To(Succeed())
	}
}

// haveTheirReplicas waits for all Deployments; missing is the cause when there is none.
func haveTheirReplicas(ctx context.Context, missing string, all ...env.Memcached) {
	GinkgoHelper()
	for _, m := range all {
		Eventually(ctx, env.DeploymentOf(m)).Should(SatisfyAll(
			match.Exist().Because(missing), match.HaveReplicas(m.Size)))
	}
}

// pickTheirOwn compares each selector with the labels of the other's Pods.
func pickTheirOwn(ctx context.Context, a, b env.Memcached) {
	GinkgoHelper()
	da, db := match.ExpectDeployment(ctx, a), match.ExpectDeployment(ctx, b)
	Expect(picksNot(da, db)).To(Succeed())
	Expect(picksNot(db, da)).To(Succeed())
}

func picksNot(d, other *appsv1.Deployment) error {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return fmt.Errorf("read selector: %w", err)
	}
	if selector.Matches(labels.Set(other.Spec.Template.Labels)) {
		return finding.New("shared-selector", "selectors that pick the Pods of their own Memcached only",
			"the selector %q of Deployment %s also picks the Pods of %s", selector, d.Name, other.Name)
	}
	return nil
}

const (
	// memcachedPort is memcached's own.
	memcachedPort = 11211
	// edits is how many passes without work are provoked, and passTime how long one of them may take.
	edits, passTime = 3, 150 * time.Millisecond
	// stayUpPeriod is how long containers are watched after they became available. One that ends over its
	// command line does so within a tenth of it; the kubelet tells a second later.
	stayUpPeriod = 2 * time.Second
	// maxFailures is how many errors for one name within [failurePeriod] are "it goes on failing". A
	// right operator can meet one or two: its cache is a moment behind.
	maxFailures   = 5
	failurePeriod = 2 * time.Second
)

// failuresOf counts from now on how often the manager fails for a Memcached: in its log, and in what the API server refuses
// it. The first errors come within milliseconds and each pause is twice the one before.
func failuresOf(m env.Memcached) func() error {
	since, before := env.RequestCount(), errorLines(m)
	return func() error {
		lines := errorLines(m)
		var refused []string
		for _, w := range m.Writes(since) {
			if w.Refused() {
				refused = append(refused, w.String())
			}
		}
		n := max(len(lines)-len(before), len(refused))
		if n < maxFailures {
			return nil
		}
		last := append(lines, refused...)
		return finding.New("keeps-failing", fmt.Sprintf("fewer than %d errors for one name within %s", maxFailures, failurePeriod),
			"%d, the last of them: %s", n, diagnostics.Shorten(last[len(last)-1]))
	}
}

// errorLines are the manager's log lines that name the Memcached and an error. The name was drawn for
// this check, so that nobody else writes it.
func errorLines(m env.Memcached) []string {
	return slices.DeleteFunc(env.LogLines(m.Name), func(line string) bool {
		return !strings.Contains(strings.ToLower(line), "error")
	})
}

// notRecreated wants no new Deployment for a Memcached that is gone. The one that was there may stay (lab 4) or be collected
// (lab 5).
func notRecreated(ctx context.Context, m env.Memcached, before *appsv1.Deployment) error {
	now, err := env.DeploymentOf(m)(ctx)
	if err == nil && now.UID != "" && now.UID != before.UID {
		return finding.New("recreated", "no new Deployment after its Memcached was deleted", "a new Deployment %s", now.Name)
	}
	return err
}
