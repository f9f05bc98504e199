// Package reconciler holds the checks of lab 4: the Deployment of a Memcached follows its spec.
package reconciler

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/finding"
)

var _ = harness.Lab(4, func() {
	harness.Check("creates-deployment", harness.First, func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.PodlessNamespace(ctx))
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, asOrdered(m))
		harness.Require(err)
	})

	harness.Check("pods-run", func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
		m.Size = 2 // a Pod is about a core-second
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		d, err := m.AwaitPods(ctx)
		harness.Require(err)
		harness.Require(harness.StayUp(ctx, d))
	})

	harness.Check("answers-version", func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
		m.Size = 2 // every Pod, and no more of them to start than it takes
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		harness.Require(everyPodAnswers(ctx, m))
	})

	harness.Check("follows-size", func(ctx SpecContext) {
		a, b := ordered(ctx), ordered(ctx)
		for range 2 {
			harness.Require(followBothWays(ctx, a, b))
			a, b = b, a
		}
	})

	harness.Check("follows-port", func(ctx SpecContext) {
		r := harness.Rand()
		m := harness.Invent(r, harness.PodlessNamespace(ctx))
		if harness.Run().RealPods {
			m.Namespace = harness.Namespace(ctx)
		}
		m.Size = 1
		harness.Require(m.Create(ctx))
		before, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		m.Port++
		harness.Require(m.SetSpec(ctx, "containerPort", m.Port))
		_, err = m.AwaitDeployment(ctx, harness.ReactBudget, templateDiffers(before))
		harness.Require(err)
		if harness.Run().RealPods {
			harness.Require(everyPodAnswers(ctx, m))
		}
	})

	harness.Check("keeps-apart", func(ctx SpecContext) {
		r := harness.Rand()
		one, other := harness.PodlessNamespace(ctx), harness.PodlessNamespace(ctx)
		a, b := harness.Invent(r, one), harness.Invent(r, one)
		twin := harness.Invent(r, other)
		twin.Name, a.Size, b.Size, twin.Size = a.Name, 2, 3, 4
		harness.Require(a.Create(ctx))
		harness.Require(b.Create(ctx))
		harness.Require(allHaveTheirReplicas(ctx, "missing-deployment", a, b))
		harness.Require(pickTheirOwn(ctx, a, b))
		harness.Require(twin.Create(ctx)) // last, so that it is the one that is taken for the other
		harness.Require(allHaveTheirReplicas(ctx, "missing-twin", twin))
		harness.Require(a.SetSpec(ctx, "size", 5))
		a.Size = 5
		harness.Require(allHaveTheirReplicas(ctx, "missing-deployment", a, b, twin))
	})

	harness.Check("deletion-quiet", func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.PodlessNamespace(ctx))
		harness.Require(m.Create(ctx))
		d, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		harness.Require(m.StaysQuietAfter(ctx, func() error { return m.Delete(ctx, metav1.DeletePropagationBackground) }))
		harness.Require(notRecreated(ctx, m, d))
	})

	harness.Check("catches-up", harness.Late, func(ctx SpecContext) {
		r := harness.Rand()
		ns := harness.PodlessNamespace(ctx)
		changed, created := harness.Invent(r, ns), harness.Invent(r, ns)
		harness.Require(changed.Create(ctx))
		_, err := changed.AwaitDeployment(ctx, harness.StartBudget, harness.HasReplicas(changed.Size, "wrong-replicas"))
		harness.Require(err)
		harness.Require(harness.WhileStopped(ctx, func() error {
			if err := changed.SetSpec(ctx, "size", 5); err != nil {
				return err
			}
			return created.Create(ctx)
		}))
		_, err = changed.AwaitDeployment(ctx, harness.StartBudget, harness.HasReplicas(5, "not-caught-up"))
		harness.Require(err)
		_, err = created.AwaitDeployment(ctx, harness.ReactBudget, nil)
		harness.Require(recast(err, "no-deployment", "not-created"))
	})

	harness.Check("follows-image", harness.Late, func(ctx SpecContext) {
		r := harness.Rand()
		m := harness.Invent(r, harness.PodlessNamespace(ctx))
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, runsImage(harness.Run().MemcachedImage, "image-hard-coded"))
		harness.Require(err)
		image := "operator-lab.local/memcached:" + harness.Name(r)
		harness.Require(harness.Restart(ctx, image))
		_, err = m.AwaitDeployment(ctx, harness.StartBudget, runsImage(image, "image-ignored"))
		harness.Require(err)
	})

	harness.Check("nothing-to-do", harness.Long, func(ctx SpecContext) {
		m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
		m.Size = 1
		harness.Require(m.Create(ctx))
		_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
		harness.Require(err)
		_, err = m.AwaitPods(ctx)
		harness.Require(err)
		harness.Require(m.Settled(ctx))
		harness.Require(m.Unchanged(ctx, func() error {
			if err := harness.Restart(ctx, harness.Run().MemcachedImage); err != nil {
				return err
			}
			return m.Annotate(ctx, "one more pass")
		}))
	})
})

// ordered makes a Memcached and waits for a Deployment with its replicas.
func ordered(ctx context.Context) harness.Memcached {
	GinkgoHelper()
	m := harness.Invent(harness.Rand(), harness.PodlessNamespace(ctx))
	harness.Require(m.Create(ctx))
	_, err := m.AwaitDeployment(ctx, harness.StartBudget, harness.HasReplicas(m.Size, "wrong-replicas"))
	harness.Require(err)
	return m
}

// followBothWays makes one Memcached big and the other one small, and says whether both Deployments follow, or
// which of them does not: an operator that knows one direction only wants another hint than one that
// never changes what it has created.
func followBothWays(ctx context.Context, grows, shrinks harness.Memcached) error {
	if err := errors.Join(grows.SetSpec(ctx, "size", 5), shrinks.SetSpec(ctx, "size", 1)); err != nil {
		return err
	}
	_, up := grows.AwaitDeployment(ctx, harness.ReactBudget, harness.HasReplicas(5, "not-scaled-up"))
	_, down := shrinks.AwaitDeployment(ctx, harness.ReactBudget, harness.HasReplicas(1, "not-scaled-down"))
	switch {
	case up == nil:
		return down
	case down == nil:
		return up
	default:
		return recast(up, "not-scaled-up", "not-scaled")
	}
}

// asOrdered wants the Deployment of the contract, as far as it shows in the object.
func asOrdered(m harness.Memcached) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		if err := harness.HasReplicas(m.Size, "wrong-replicas")(d); err != nil {
			return err
		}
		return runsImage(harness.Run().MemcachedImage, "wrong-image")(d)
	}
}

func runsImage(want, cause string) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		c, err := harness.Container(d)
		if err != nil {
			return err
		}
		if c.Image != want {
			return finding.New(cause, "image "+want+", as MEMCACHED_IMAGE says", "image %s", c.Image).
				With(finding.Field{Path: "spec.template.spec.containers[" + c.Name + "].image", Want: want, Have: c.Image})
		}
		return nil
	}
}

func templateDiffers(before *appsv1.Deployment) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		if d.Generation == before.Generation {
			return finding.New("port-ignored", "a Deployment that was changed, as spec.containerPort was", "the Deployment as it was created")
		}
		return nil
	}
}

// everyPodAnswers asks each Pod of a Deployment whose roll-out has ended.
func everyPodAnswers(ctx context.Context, m harness.Memcached) error {
	d, err := m.AwaitPods(ctx)
	if err != nil {
		return err
	}
	pods, err := harness.Pods(ctx, d)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			continue // of the roll-out before
		}
		if err := harness.AskVersion(ctx, pod, m.Port); err != nil {
			return err
		}
		if err := harness.Reachable(ctx, pod, m.Port); err != nil {
			return err
		}
	}
	return nil
}

// allHaveTheirReplicas waits for all Deployments; missing is the cause when there is none.
func allHaveTheirReplicas(ctx context.Context, missing string, all ...harness.Memcached) error {
	for _, m := range all {
		if _, err := m.AwaitDeployment(ctx, harness.StartBudget, harness.HasReplicas(m.Size, "wrong-replicas")); err != nil {
			return recast(err, "no-deployment", missing)
		}
	}
	return nil
}

// pickTheirOwn compares each selector with the labels of the other's Pods.
func pickTheirOwn(ctx context.Context, a, b harness.Memcached) error {
	da, err := a.Deployment(ctx)
	if err != nil {
		return err
	}
	db, err := b.Deployment(ctx)
	if err != nil {
		return err
	}
	if err := picksNot(da, db); err != nil {
		return err
	}
	return picksNot(db, da)
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

// notRecreated looks whether the manager made a new Deployment for a Memcached that is gone. The one
// that was there may stay (lab 4) or be collected (lab 5).
func notRecreated(ctx context.Context, m harness.Memcached, before *appsv1.Deployment) error {
	now, err := m.Deployment(ctx)
	if f, ok := errors.AsType[*finding.Finding](err); ok && f.Cause == harness.CauseNoDeployment {
		return nil
	}
	if err == nil && now.UID != before.UID {
		return finding.New("recreated", "no new Deployment after its Memcached was deleted", "a new Deployment %s", now.Name)
	}
	return err
}

// recast gives a finding the cause under which this check explains it.
func recast(err error, from, to string) error {
	if err == nil {
		return nil
	}
	f := finding.Of(err)
	if f.Cause != from {
		return err
	}
	return f.WithCause(to)
}
