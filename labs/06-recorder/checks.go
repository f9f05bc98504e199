// Package recorder holds the checks of lab 6: what the operator did is told in events, once.
package recorder

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// edits is how many passes without work are provoked.
	edits = 3
	// passTime is how long one of them may take.
	passTime = time.Second
	// startWarnings is how many Warnings a Memcached may get while its Pod starts. A start is no failure: one that is told
	// again and again teaches people not to read Warnings.
	startWarnings = 1
)

// camelCase is the form of a reason.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

var _ = Describe("Lab 6", env.Lab(6), func() {
	It("tells the creation once", env.Check("event-created", env.First), func(ctx SpecContext) {
		m := toldCreated(ctx)
		podless := env.NewMemcached(env.NamespaceWithoutPods(ctx)) // a creation is told when it is done, and not when Pods run
		Expect(podless.Create(ctx)).To(Succeed())
		Eventually(ctx, env.EventsOf(podless)).Should(match.Make(func(events []eventsv1.Event) error {
			return normalEvent(normal(events), nil, "a Normal event about the creation, also while a quota admits no Pods")
		}))
		Consistently(ctx, env.EventsOf(m)).WithTimeout(env.QuietPeriod).Should(match.Make(toldOnce))
		atRest(ctx, m)
		events, err := m.Events(ctx)
		Expect(err).To(Succeed())
		Expect(fewWarnings(events)).To(Succeed())
	})

	It("tells each scaling", env.Check("event-scaled"), func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		before := reasons(ctx, m)
		up := scaleAtSecondTry(ctx, m, 3, before) // by more than one: an event for each replica is too many
		changePort(ctx, m, up)                    // before the third event of a kind, which a recorder may keep to itself for minutes
		down := scale(ctx, m, 1, before)
		Expect(sameReason(up, down)).To(Succeed())
	})

	It("tells a failure once", env.Check("event-failure"), func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		before := reasons(ctx, m)
		good := slices.Concat(before, scale(ctx, m, 2, before))
		bad := env.NewMemcached(m.Namespace)
		_, err := bad.CreateForeign(ctx)
		Expect(err).To(Succeed())
		Expect(bad.Create(ctx)).To(Succeed())
		Eventually(ctx, env.EventsOf(bad)).Should(match.Make(toldFailure(good)))
		areShown(ctx, bad)
		match.ExpectStable(ctx, bad)
		quietThroughEdits(ctx, bad, func(err error) error {
			return finding.New("repeated", "a failure that lasts is told once, also when an annotation is edited or your manager is started again", "%s", finding.Of(err).Seen)
		})
		refusedCreation(ctx)
	})

	It("tells nothing when nothing happens", env.Check("events-quiet"), func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		quietThroughEdits(ctx, m, func(err error) error { return err })
	})
})

// toldCreated makes a Memcached and waits for the event that tells its creation. Its Pods may run: an
// operator is free to warn about Pods that a quota refuses.
func toldCreated(ctx context.Context) env.Memcached {
	GinkgoHelper()
	m := env.NewMemcached(env.Namespace(ctx))
	m.Size = 1 // a Pod is about a core-second, and says no more than another one
	Expect(m.Create(ctx)).To(Succeed())
	match.ExpectDeployment(ctx, m)
	Eventually(ctx, env.EventsOf(m)).Should(match.Make(func(events []eventsv1.Event) error {
		return normalEvent(events, nil, "a Normal event on the Memcached about its creation, with a reason in CamelCase")
	}))
	areShown(ctx, m)
	return m
}

// areShown wants the events that bear the name of a Memcached to bear its UID, too: `kubectl describe` looks for that.
func areShown(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	obj, err := m.Get(ctx)
	Expect(err).To(Succeed())
	events, err := m.Events(ctx)
	Expect(err).To(Succeed())
	for _, e := range events {
		if e.Regarding.UID != obj.GetUID() {
			Expect(finding.New("wrong-object", "events about the Memcached with the UID "+string(obj.GetUID())+", which kubectl describe shows",
				"an event %s about the UID %q", e.Reason, e.Regarding.UID)).To(Succeed())
		}
	}
}

// atRest waits until all that a creation brings has happened, and may have been told.
func atRest(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	match.ExpectPods(ctx, m)
	match.ExpectStable(ctx, m)
}

// normalEvent wants a Normal event whose reason is none of the known ones.
func normalEvent(events []eventsv1.Event, known []string, expected string) error {
	var other *eventsv1.Event
	for i, e := range events {
		if slices.Contains(known, e.Reason) {
			continue
		}
		other = &events[i]
		if e.Type == corev1.EventTypeNormal && camelCase.MatchString(e.Reason) {
			return nil
		}
	}
	switch {
	case other == nil:
		return finding.New("no-event", expected, "none")
	case other.Type != corev1.EventTypeNormal:
		return finding.New("wrong-type", expected, "%s %s: %s", other.Type, other.Reason, other.Note)
	default:
		return finding.New("bad-reason", expected, "reason %q", other.Reason)
	}
}

// reasons are those of the Normal events: of the good news.
func reasons(ctx context.Context, m env.Memcached) []string {
	GinkgoHelper()
	events, err := m.Events(ctx)
	Expect(err).To(Succeed())
	return reasonsOf(normal(events), nil)
}

// normal are the good news among events.
func normal(events []eventsv1.Event) []eventsv1.Event {
	return slices.DeleteFunc(slices.Clone(events), func(e eventsv1.Event) bool { return e.Type != corev1.EventTypeNormal })
}

// changePort wants no event of a scaling for what is none.
func changePort(ctx context.Context, m env.Memcached, scalings []string) {
	GinkgoHelper()
	before, err := m.Events(ctx)
	Expect(err).To(Succeed())
	m.Port++
	Expect(m.SetSpec(ctx, "containerPort", m.Port)).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).Should(match.HavePort(m.Port))
	Consistently(ctx, env.EventsOf(m)).WithTimeout(passTime).Should(match.Make(func(events []eventsv1.Event) error {
		for _, e := range since(events, before) {
			if slices.Contains(scalings, e.Reason) {
				return finding.New("told-without-scaling", "no event about a scaling when only the port was changed", "%s %s: %s", e.Type, e.Reason, e.Note)
			}
		}
		return nil
	}))
}

// refusedCreation wants a Warning about a Deployment that the API server refuses, and no good news until it is created.
func refusedCreation(ctx context.Context) {
	GinkgoHelper()
	m := env.NewMemcached(env.NamespaceWithoutPods(ctx))
	lift, err := env.RefuseDeployments(ctx, m.Namespace)
	Expect(err).To(Succeed())
	Expect(m.Create(ctx)).To(Succeed())
	Eventually(ctx, env.EventsOf(m)).Should(match.Make(func(events []eventsv1.Event) error {
		const expected = "a Warning on the Memcached whose Deployment the API server refuses, and no good news"
		for _, e := range events {
			if e.Type == corev1.EventTypeNormal {
				return env.Final(finding.New("event-before-write", expected, "%s %s: %s", e.Type, e.Reason, e.Note))
			}
		}
		if len(events) == 0 {
			return finding.New("no-event", expected, "none")
		}
		return nil
	}))
	Expect(lift(ctx)).To(Succeed())
	Eventually(ctx, env.EventsOf(m)).WithTimeout(env.RetryTimeout).Should(match.Make(func(events []eventsv1.Event) error {
		err := normalEvent(normal(events), nil, "a Normal event about the creation, when the API server takes the Deployment at last")
		if err != nil {
			return finding.New("creation-event-missing", finding.Of(err).Expected, "%s", finding.Of(err).Seen)
		}
		return nil
	}).ByKubernetes(env.RetryTimeout))
}

// scale changes the size, and returns the reasons of the events that tell it: known are those that were told
// before anything was scaled.
func scale(ctx context.Context, m env.Memcached, size int32, known []string) []string {
	GinkgoHelper()
	before, err := m.Events(ctx)
	Expect(err).To(Succeed())
	Expect(m.SetSpec(ctx, "size", size)).To(Succeed())
	return toldScaling(ctx, m, size, known, func(events []eventsv1.Event) []eventsv1.Event { return since(events, before) })
}

// scaleAtSecondTry is scale while the API server refuses the first writes. Nothing is scaled until then, and nobody may say so. The
// refusal may be told.
func scaleAtSecondTry(ctx context.Context, m env.Memcached, size int32, known []string) []string {
	GinkgoHelper()
	before, err := m.Events(ctx)
	Expect(err).To(Succeed())
	Expect(faults.RefuseWrites(ctx, m.Namespace, apiproxy.NoDeployments, env.FirstTry, 1, func() error {
		if err := m.SetSpec(ctx, "size", size); err != nil {
			return err
		}
		if err := env.Sleep(ctx, passTime); err != nil {
			return err
		}
		events, err := m.Events(ctx)
		if err != nil {
			return err
		}
		return untold(normal(since(events, before)), known)
	})).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).Should(match.HaveReplicas(size).Because("not-scaled").ByKubernetes(env.RetryTimeout))
	return toldScaling(ctx, m, size, known, func(events []eventsv1.Event) []eventsv1.Event { return normal(since(events, before)) })
}

// untold wants no good news about what the API server refuses.
func untold(news []eventsv1.Event, known []string) error {
	for _, e := range news {
		if !slices.Contains(known, e.Reason) {
			return finding.New("event-before-write", "no good news while the API server refuses the scaling", "%s %s: %s", e.Type, e.Reason, e.Note)
		}
	}
	return nil
}

// toldScaling wants a Normal event about a scaling among the new ones, which are picked, and one of each reason. It returns the reasons.
func toldScaling(ctx context.Context, m env.Memcached, size int32, known []string, picked func([]eventsv1.Event) []eventsv1.Event) []string {
	GinkgoHelper()
	Eventually(ctx, env.DeploymentOf(m)).Should(match.HaveReplicas(size).Because("not-scaled"))
	expected := fmt.Sprintf("a Normal event for the scaling to %d, with a reason of its own in CamelCase", size)
	Eventually(ctx, env.EventsOf(m)).Should(match.Make(func(events []eventsv1.Event) error {
		return scalingEvent(picked(events), known, expected)
	}))
	var told []string
	Consistently(ctx, env.EventsOf(m)).WithTimeout(passTime).Should(match.Make(func(events []eventsv1.Event) error {
		events = picked(events)
		told = reasonsOf(events, known)
		if n := total(events, known); n > len(told) {
			return finding.New("several-events", "one Normal event for each scaling", "%d for the scaling to %d: %s", n, size, list(events))
		}
		return nil
	}))
	return told
}

// scalingEvent is [normalEvent], and says so when an event with a reason of the creation came instead.
func scalingEvent(events []eventsv1.Event, known []string, expected string) error {
	err := normalEvent(events, known, expected)
	if len(events) > 0 && err != nil && finding.Of(err).Cause == "no-event" {
		return finding.New("same-reason", expected, "another event with the reason of the creation: %s", list(events))
	}
	return err
}

// sameReason wants one sort of event for both directions. There may be others besides.
func sameReason(up, down []string) error {
	if slices.ContainsFunc(up, func(reason string) bool { return slices.Contains(down, reason) }) {
		return nil
	}
	return finding.New("different-reasons", "the same reason for each scaling, up or down", "%s up, and %s down",
		strings.Join(up, ", "), strings.Join(down, ", "))
}

// since are the events that are not among those before, or were repeated since then. They count what is new: at least once, whatever
// it is that was written.
func since(events, before []eventsv1.Event) []eventsv1.Event {
	then := map[types.UID]eventsv1.Event{}
	for _, e := range before {
		then[e.UID] = e
	}
	var now []eventsv1.Event
	for _, e := range events {
		n := env.Times(e)
		if old, known := then[e.UID]; known {
			n -= env.Times(old)
			if old.ResourceVersion != e.ResourceVersion {
				n = max(n, 1)
			}
		}
		if n > 0 {
			e.Series, e.DeprecatedCount = nil, int32(n)
			now = append(now, e)
		}
	}
	return now
}

// reasonsOf are the reasons of events that are none of the known ones, sorted.
func reasonsOf(events []eventsv1.Event, known []string) []string {
	var all []string
	for _, e := range events {
		if !slices.Contains(known, e.Reason) && !slices.Contains(all, e.Reason) {
			all = append(all, e.Reason)
		}
	}
	slices.Sort(all)
	return all
}

// list shows events on one line.
func list(events []eventsv1.Event) string {
	var all []string
	for _, e := range events {
		all = append(all, fmt.Sprintf("%s %s (%d)", e.Type, e.Reason, env.Times(e)))
	}
	return strings.Join(all, ", ")
}

// total is how often events with other reasons than the known ones were recorded.
func total(events []eventsv1.Event, known []string) int {
	n := 0
	for _, e := range events {
		if !slices.Contains(known, e.Reason) {
			n += env.Times(e)
		}
	}
	return n
}

// toldOnce wants a Normal event of the first second that was told once: the creation. Others may come as often as they like,
// as long as something happens.
func toldOnce(events []eventsv1.Event) error {
	events = normal(events)
	times, first := map[string]int{}, map[string]time.Time{}
	var creation time.Time
	for _, e := range events {
		at := e.CreationTimestamp.Time
		if times[e.Reason] += env.Times(e); first[e.Reason].IsZero() || at.Before(first[e.Reason]) {
			first[e.Reason] = at
		}
		if creation.IsZero() || at.Before(creation) {
			creation = at
		}
	}
	for reason, n := range times {
		if n == 1 && first[reason].Sub(creation) <= time.Second {
			return nil
		}
	}
	return finding.New("several-events", "one event for one creation", "%s", list(events))
}

// fewWarnings wants hardly a Warning on a Memcached of which nothing has failed.
func fewWarnings(events []eventsv1.Event) error {
	n := 0
	for _, e := range events {
		if e.Type == corev1.EventTypeWarning {
			n += env.Times(e)
		}
	}
	if n > startWarnings {
		return finding.New("warns-while-starting", fmt.Sprintf("at most %d Warning on a Memcached whose Pods just start", startWarnings), "%s", list(events))
	}
	return nil
}

// toldFailure wants a Warning with a reason that no good news has.
func toldFailure(good []string) func([]eventsv1.Event) error {
	const expected = "a Warning on the Memcached whose Deployment belongs to somebody else, with a reason of its own in CamelCase"
	return func(events []eventsv1.Event) error {
		if len(events) == 0 {
			return finding.New("no-event", expected, "none")
		}
		for _, e := range events {
			if e.Type != corev1.EventTypeWarning {
				continue
			}
			switch {
			case !camelCase.MatchString(e.Reason):
				return finding.New("bad-reason", expected, "reason %q", e.Reason)
			case slices.Contains(good, e.Reason):
				return finding.New("same-reason", expected, "the reason %s, as for the creation or the scaling", e.Reason)
			}
			return nil
		}
		return finding.New("wrong-type", expected, "%s %s: %s", events[0].Type, events[0].Reason, events[0].Note)
	}
}

// quietThroughEdits edits an annotation several times, each a pass that finds nothing to do, and wants no event for it.
// explain gives a finding the cause under which the check explains it.
func quietThroughEdits(ctx context.Context, m env.Memcached, explain func(error) error) {
	GinkgoHelper()
	before, err := m.Events(ctx)
	Expect(err).To(Succeed())
	for i := range edits {
		if i == edits-1 { // a manager that was started again has forgotten what it told
			Expect(env.Manager().Restart(ctx, env.Run().MemcachedImage)).To(Succeed())
		}
		Expect(m.Annotate(ctx)).To(Succeed())
		Consistently(ctx, env.EventsOf(m)).WithTimeout(passTime).Should(match.Make(func(events []eventsv1.Event) error {
			if err := nothingNew(events, before); err != nil {
				return explain(err)
			}
			return nil
		}))
	}
}

func nothingNew(events, before []eventsv1.Event) error {
	const expected = "no event after an edit of an annotation, or a start of the manager"
	news := since(events, before)
	switch {
	case len(news) == 0:
		return nil
	case len(events) > len(before):
		return finding.New("new-event", expected, "%s", list(news))
	default:
		return finding.New("series", expected, "an earlier event was repeated: %s", list(news))
	}
}
