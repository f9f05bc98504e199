// Package recorder holds the checks of lab 6: what the operator did is told in events, once.
package recorder

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// passTime is how long a pass may take that finds nothing to do.
	passTime = time.Second
	// maxStartWarnings is how many Warnings a Memcached may get while its Pod starts. A start is no failure: one that is told
	// again and again teaches people not to read Warnings.
	maxStartWarnings = 1
)

var _ = Describe("Lab 6", env.Lab(6), func() {
	It("tells the creation once", env.Check("event-created"), func(ctx SpecContext) {
		m := toldCreated(ctx, env.Namespace(ctx))
		toldCreated(ctx, env.Namespace(ctx, env.Quota(0))) // a creation is told when it is done, and not when Pods run
		Consistently(ctx, env.EventsOf(m)).Should(match.Make(toldOnce))
		atRest(ctx, m)
		if told := eventsOf(ctx, m); told.times(corev1.EventTypeWarning) > maxStartWarnings {
			expected := fmt.Sprintf("at most %d Warning on a Memcached whose Pods just start", maxStartWarnings)
			Expect(finding.New("warns-while-starting", expected, "%s", told)).To(Succeed())
		}
	})

	It("tells each scaling", env.Check("event-scaled"), func(ctx SpecContext) {
		m := toldCreated(ctx, env.Namespace(ctx))
		atRest(ctx, m)
		created := eventsOf(ctx, m).good()
		up := scale(ctx, m, 3, created, refused) // by more than one: an event for each replica is too many
		changePort(ctx, m, up)                   // before the third event of a kind, which a recorder may keep to itself for minutes
		down := scale(ctx, m, 1, created, taken)
		if !slices.ContainsFunc(up.reasons(), func(reason string) bool { return slices.Contains(down.reasons(), reason) }) {
			Expect(finding.New("different-reasons", "the same reason for each scaling, up or down", "%s up, and %s down", up, down)).To(Succeed())
		}
	})

	It("tells a failure once", env.Check("event-failure"), func(ctx SpecContext) {
		m := toldCreated(ctx, env.Namespace(ctx))
		atRest(ctx, m)
		good := eventsOf(ctx, m).good()
		good = slices.Concat(good, scale(ctx, m, 2, good, taken))
		bad := env.NewMemcached(m.Namespace)
		Expect(bad.CreateForeign(ctx)).Error().To(Succeed())
		Expect(bad.Create(ctx)).To(Succeed())
		Eventually(ctx, env.EventsOf(bad)).Should(match.Make(func(events []eventsv1.Event) error {
			return tell(tally(events), corev1.EventTypeWarning, good,
				"a Warning on the Memcached whose Deployment belongs to somebody else, with a reason of its own in CamelCase")
		}))
		match.ExpectStable(ctx, bad)
		staysQuiet(ctx, bad, "repeated", "a failure that lasts is told once, also when an annotation is edited or your manager is started again")
		refusedCreation(ctx)
	})

	It("tells nothing when nothing happens", env.Check("events-quiet"), func(ctx SpecContext) {
		m := toldCreated(ctx, env.Namespace(ctx))
		atRest(ctx, m)
		staysQuiet(ctx, m, "new-event", "no event after an edit of an annotation, or a start of the manager")
	})
})

// toldCreated makes a Memcached and waits for the event that tells its creation. Its Pods may run: an operator is free to warn
// about Pods that a quota refuses.
func toldCreated(ctx context.Context, namespace string) env.Memcached {
	GinkgoHelper()
	m := match.ExpectCreated(ctx, namespace, 1) // a Pod is about a core-second, and says no more than another one
	Eventually(ctx, env.EventsOf(m)).Should(match.Make(func(events []eventsv1.Event) error {
		return tell(tally(events), corev1.EventTypeNormal, nil, "a Normal event on the Memcached about its creation, with a reason in CamelCase")
	}))
	return m
}

// toldOnce wants a Normal event that was told once: the creation. Others may come as often as they like.
func toldOnce(events []eventsv1.Event) error {
	told := tally(events)
	if !slices.ContainsFunc(told, func(e event) bool { return e.Type == corev1.EventTypeNormal && e.times == 1 }) {
		return finding.New("several-events", "one event for one creation", "%s", told)
	}
	return nil
}

// atRest waits until all that a creation brings has happened, and may have been told.
func atRest(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	match.ExpectPods(ctx, m)
	match.ExpectStable(ctx, m)
}

// refused has the API server refuse the first writes of act, and taken does not. Nothing is scaled until then, and nobody may
// say so. The refusal may be told.
func refused(ctx context.Context, m env.Memcached, act func() error) error {
	before := eventsOf(ctx, m)
	return faults.RefuseWrites(ctx, m.Namespace, "deployments", func() error {
		if err := act(); err != nil {
			return err
		}
		if err := env.Sleep(ctx, passTime); err != nil {
			return err
		}
		if news := eventsOf(ctx, m).since(before).good(); len(news) > 0 {
			return finding.New("event-before-write", "no good news while the API server refuses the scaling", "%s", news)
		}
		return nil
	})
}

func taken(_ context.Context, _ env.Memcached, act func() error) error { return act() }

// scale changes the size, by way of how, and returns the Normal events that tell it: one of each reason, and none of the reasons
// of the creation.
func scale(
	ctx context.Context, m env.Memcached, size int32, created tallies, how func(context.Context, env.Memcached, func() error) error,
) tallies {
	GinkgoHelper()
	before := eventsOf(ctx, m)
	Expect(how(ctx, m, func() error { return m.SetSpec(ctx, "size", size) })).To(Succeed())
	told := eventsOf(ctx, m)
	failures := told.without(told.good()) // Warnings about what was refused
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
		Should(match.HaveReplicas(size).Because("not-scaled").ByKubernetes(env.RetryTimeout))
	expected := fmt.Sprintf("one Normal event for the scaling to %d, with a reason of its own in CamelCase", size)
	Eventually(ctx, env.EventsOf(m)).Should(match.Make(func(events []eventsv1.Event) error {
		return tell(tally(events).since(before).without(failures), corev1.EventTypeNormal, created, expected)
	}))
	Consistently(ctx, env.EventsOf(m)).WithTimeout(passTime).Should(match.Make(func(events []eventsv1.Event) error {
		if news := tally(events).since(before).good().without(created); slices.ContainsFunc(news, func(e event) bool { return e.times > 1 }) {
			return finding.New("several-events", expected, "%s", news)
		}
		return nil
	}))
	return eventsOf(ctx, m).since(before).good().without(created)
}

// changePort wants no event of a scaling for what is none.
func changePort(ctx context.Context, m env.Memcached, scalings tallies) {
	GinkgoHelper()
	before := eventsOf(ctx, m)
	m.Port++
	Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).Should(match.BeTold("port", m.Port))
	Consistently(ctx, env.EventsOf(m)).WithTimeout(passTime).Should(match.Make(func(events []eventsv1.Event) error {
		if news := tally(events).since(before); len(news.without(scalings)) < len(news) {
			return finding.New("told-without-scaling", "no event about a scaling when only the port was changed", "%s", news)
		}
		return nil
	}))
}

// refusedCreation wants a Warning about a Deployment that the API server refuses, and no good news until it is created.
func refusedCreation(ctx context.Context) {
	GinkgoHelper()
	m := env.NewMemcached(env.Namespace(ctx, env.Quota(0)))
	lift := env.RefuseDeployments(ctx, m.Namespace)
	Expect(m.Create(ctx)).To(Succeed())
	Eventually(ctx, env.EventsOf(m)).Should(match.Make(func(events []eventsv1.Event) error {
		const expected = "a Warning on the Memcached whose Deployment the API server refuses, and no good news"
		if news := tally(events).good(); len(news) > 0 {
			return StopTrying("nothing will change").Wrap(finding.New("event-before-write", expected, "%s", news))
		}
		return tell(tally(events), corev1.EventTypeWarning, nil, expected)
	}))
	Expect(lift(ctx)).To(Succeed())
	Eventually(ctx, env.EventsOf(m)).WithTimeout(env.RetryTimeout).Should(match.Make(func(events []eventsv1.Event) error {
		return tell(tally(events).good(), corev1.EventTypeNormal, nil,
			"a Normal event about the creation, when the API server takes the Deployment at last")
	}).Because("creation-event-missing").ByKubernetes(env.RetryTimeout))
}

// staysQuiet edits an annotation and starts the manager again, which has then forgotten what it told. Each makes a pass that finds
// nothing to do. cause is that of an event about it.
func staysQuiet(ctx context.Context, m env.Memcached, cause, expected string) {
	GinkgoHelper()
	before := eventsOf(ctx, m)
	for _, restart := range []bool{false, true} {
		if restart {
			Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
		}
		Expect(m.Annotate(ctx)).To(Succeed())
		Consistently(ctx, env.EventsOf(m)).WithTimeout(passTime).Should(match.Make(func(events []eventsv1.Event) error {
			if news := tally(events).since(before); len(news) > 0 {
				return finding.New(cause, expected, "%s", news)
			}
			return nil
		}))
	}
}
