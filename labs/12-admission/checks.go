// Package admission holds the checks of lab 12: what the API server fills in, refuses and warns of before it stores a Memcached, by
// rules of the definition and by the operator's webhooks.
package admission

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
)

const (
	// knownPeriod is how long the cache of a webhook may take to know an object.
	knownPeriod = time.Second
	// defaultMemory is memcached's memory where nobody asks for any, in MiB.
	defaultMemory = 64
)

var _ = Describe("Lab 12", env.Lab(12), SpecPriority(6), func() {
	It("bounds the items by the memory", env.Check("cel-refuses"), func(ctx SpecContext) {
		m, memory := env.NewMemcached(env.Namespace(ctx, env.Quota(0))), 2*randomMemory()
		Expect(accepted(m.CreateWith(ctx, map[string]any{"memory": memory, "maxItemSize": memory / 2}), "valid-refused")).To(Succeed())
		Expect(have(ctx, m, "memory", "no-field", memory)).To(Succeed())
		Expect(have(ctx, m, "maxItemSize", "no-field", memory/2)).To(Succeed())
		Expect(refused(m.SetSpec(ctx, "maxItemSize", memory/2+1), "half of memory and 1 as maxItemSize", "not-refused")).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.BeTold("memory", memory))
		Eventually(ctx, env.DeploymentOf(m)).Should(beToldItemSize(memory / 2))
		m = env.NewMemcached(m.Namespace)
		Expect(refused(m.CreateWith(ctx, map[string]any{"maxItemSize": int64(defaultMemory/2 + 1)}), "maxItemSize 33 without memory", "not-refused")).To(Succeed())
		Expect(accepted(m.CreateWith(ctx, map[string]any{"maxItemSize": int64(defaultMemory / 2)}), "valid-refused")).To(Succeed())
	})

	It("fills in the memory", env.Check("defaults"), func(ctx SpecContext) {
		here, there, memory := env.Namespace(ctx, env.Quota(0)), env.Namespace(ctx, env.Quota(0)), randomMemory()
		env.InstallWebhooks(ctx, here, there)
		Expect(annotate(ctx, here, memory)).To(Succeed())
		Expect(env.Sleep(ctx, knownPeriod)).To(Succeed())
		m, own, other := env.NewMemcached(here), env.NewMemcached(here), env.NewMemcached(there)
		Expect(m.Create(ctx)).To(Succeed())
		Expect(have(ctx, m, "memory", "not-defaulted", memory)).To(Succeed())
		Eventually(ctx, env.DeploymentOf(m)).Should(match.BeTold("memory", memory))
		Expect(own.CreateWith(ctx, map[string]any{"memory": memory + 1})).To(Succeed())
		Expect(have(ctx, own, "memory", "overwritten", memory+1)).To(Succeed())
		Expect(other.Create(ctx)).To(Succeed())
		Expect(have(ctx, other, "memory", "wrong-default", defaultMemory, 0)).To(Succeed())
	})

	It("refuses a name that is taken", env.Check("refuses-taken-name"), func(ctx SpecContext) {
		here, there := env.Namespace(ctx, env.Quota(0)), env.Namespace(ctx, env.Quota(0))
		env.InstallWebhooks(ctx, here, there)
		again := match.ExpectCreated(ctx, here)
		taken := env.NewMemcached(here)
		Expect(taken.CreateForeign(ctx)).Error().To(Succeed())
		Expect(env.Sleep(ctx, knownPeriod)).To(Succeed())
		err := taken.Create(ctx)
		Expect(refused(err, "a Memcached whose name a Deployment has", "not-refused")).To(Succeed())
		Expect(err.Error()).To(match.Because("not-named", "a refusal with the name "+taken.Name, ContainSubstring(taken.Name)))
		taken.Namespace = there
		Expect(accepted(taken.Create(ctx), "free-name-refused")).To(Succeed())

		hold := func(d *appsv1.Deployment) { controllerutil.AddFinalizer(d, holdFinalizer) }
		Expect(again.EditDeployment(ctx, hold)).To(Succeed()) // it outlives its Memcached, as for a moment each does
		DeferCleanup(func(ctx SpecContext) {
			_ = again.EditDeployment(ctx, func(d *appsv1.Deployment) { controllerutil.RemoveFinalizer(d, holdFinalizer) })
		})
		Expect(again.Delete(ctx, metav1.DeletePropagationBackground)).To(Succeed())
		Eventually(ctx, env.MemcachedOf(again)).Should(match.BeGone())
		Expect(accepted(again.Create(ctx), "free-name-refused")).To(Succeed())
	})

	It("leaves what exists changeable", env.Check("never-locks-in"), func(ctx SpecContext) {
		m, spec := env.NewMemcached(env.Namespace(ctx, env.Quota(0)), 2), withOptions(env.RandomName()) // of one that is not there
		spec["maxItemSize"] = int64(defaultMemory / 2)
		Expect(m.CreateForeign(ctx)).Error().To(Succeed())
		Expect(m.CreateWith(ctx, spec)).To(Succeed())
		Expect(annotate(ctx, m.Namespace, defaultMemory/2)).To(Succeed())
		env.InstallWebhooks(ctx, m.Namespace)
		Expect(env.Sleep(ctx, knownPeriod)).To(Succeed())
		Expect(accepted(m.Annotate(ctx), "locked-in")).To(Succeed())
		Expect(accepted(m.SetSpec(ctx, "size", 3), "locked-in")).To(Succeed())
		Expect(accepted(m.Hold(ctx), "locked-in")).To(Succeed())
		Expect(accepted(m.Delete(ctx, metav1.DeletePropagationBackground), "locked-in")).To(Succeed())
		Expect(accepted(m.Release(ctx), "locked-in")).To(Succeed())
		Eventually(ctx, env.MemcachedOf(m)).Should(match.BeGone())
	})

	It("warns of a ConfigMap that is missing", env.Check("warns"), func(ctx SpecContext) {
		namespace, there, missing := env.Namespace(ctx, env.Quota(0)), env.RandomName(), env.RandomName()
		env.InstallWebhooks(ctx, namespace)
		Expect(createOptions(ctx, namespace, there)).To(Succeed())
		Expect(env.Sleep(ctx, knownPeriod)).To(Succeed())
		for _, name := range []string{missing, there} {
			Expect(env.NewMemcached(namespace).CreateWith(ctx, withOptions(name))).To(Succeed())
		}
		Expect(env.Warnings()).To(match.Because("no-warning", "a warning that names the ConfigMap "+missing, ContainSubstring(missing)))
		Expect(env.Warnings()).NotTo(ContainSubstring(there))
	})

	It("is asked about Memcacheds only", env.Check("rules-within"), func(ctx SpecContext) {
		namespace := env.Namespace(ctx, env.Quota(0))
		Expect(areWithin()).To(Succeed())
		env.InstallWebhooks(ctx, namespace)
		m := env.NewMemcached(namespace)
		since := env.RequestCount()
		Expect(accepted(dryRun(ctx, m, withOptions(env.RandomName())), "dry-run-refused")).To(Succeed())
		Expect(env.Sleep(ctx, knownPeriod)).To(Succeed())
		Expect(m.Writes(since)).To(match.Because("dry-run-writes", "no request of the manager that writes, for a dry run", BeEmpty()))
	})
})
