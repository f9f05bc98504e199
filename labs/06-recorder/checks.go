// Package recorder holds the checks of lab 6: what the operator did is told in events, once.
package recorder

import (
	"context"
	"fmt"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/example/operator-lab/labs/harness"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// edits is how many passes without work are provoked.
	edits = 3
	// passTime is how long one of them may take.
	passTime = time.Second
)

var _ = harness.Lab(6, func() {
	harness.Check("event-created", harness.First, func(ctx SpecContext) {
		m := toldCreated(ctx)
		harness.Require(harness.Throughout(ctx, harness.QuietPeriod, func() error { return eachOnce(ctx, m) }))
	})

	harness.Check("event-scaled", func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		before := reasons(ctx, m)
		first := scale(ctx, m, 5, before)
		second := scale(ctx, m, 1, before)
		if !slices.Equal(first, second) {
			harness.Require(finding.New("no-event", fmt.Sprintf("every scaling is told with the reason %q", first), "the second one with %q", second))
		}
	})

	harness.Check("event-failure", func(ctx SpecContext) {
		m := toldCreated(ctx)
		good := reasons(ctx, m)
		bad := harness.Invent(harness.Rand(), m.Namespace)
		_, err := bad.CreateForeign(ctx)
		harness.Require(err)
		harness.Require(bad.Create(ctx))
		harness.Require(toldFailure(ctx, bad, good))
	})

	harness.Check("events-quiet", func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		before, err := m.Events(ctx)
		harness.Require(err)
		for i := range edits {
			harness.Require(m.Annotate(ctx, fmt.Sprintf("edit %d", i)))
			harness.Require(harness.Throughout(ctx, passTime, func() error { return nothingNew(ctx, m, before) }))
		}
	})
})

// toldCreated makes a Memcached and waits for the event that tells its creation. Its Pods may run: an
// operator is free to warn about Pods that a quota refuses.
func toldCreated(ctx context.Context) harness.Memcached {
	GinkgoHelper()
	m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
	m.Size = 2
	harness.Require(m.Create(ctx))
	_, err := m.AwaitDeployment(ctx, harness.StartBudget, nil)
	harness.Require(err)
	const expected = "a Normal event on the Memcached about its creation, with a reason in CamelCase"
	err = m.AwaitEvents(ctx, func(events []eventsv1.Event) error {
		return normalEvent(events, nil, expected)
	})
	harness.Require(explain(ctx, m, err, expected))
	return m
}

// atRest waits until all that a creation brings has happened, and may have been told.
func atRest(ctx context.Context, m harness.Memcached) {
	GinkgoHelper()
	_, err := m.AwaitPods(ctx)
	harness.Require(err)
	harness.Require(m.Settled(ctx))
}

// normalEvent wants a Normal event whose reason is none of the known ones.
func normalEvent(events []eventsv1.Event, known []string, expected string) error {
	var other *eventsv1.Event
	for i, e := range events {
		if slices.Contains(known, e.Reason) {
			continue
		}
		other = &events[i]
		if e.Type == corev1.EventTypeNormal && harness.CamelCase.MatchString(e.Reason) {
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

// explain asks further when there was no event at all.
func explain(ctx context.Context, m harness.Memcached, err error, expected string) error {
	if err == nil || finding.Of(err).Cause != "no-event" {
		return err
	}
	if events, listErr := m.Events(ctx); listErr == nil && len(events) > 0 {
		return err
	}
	return m.WhyNoEvent(ctx, expected)
}

func reasons(ctx context.Context, m harness.Memcached) []string {
	GinkgoHelper()
	events, err := m.Events(ctx)
	harness.Require(err)
	var all []string
	for _, e := range events {
		if !slices.Contains(all, e.Reason) {
			all = append(all, e.Reason)
		}
	}
	slices.Sort(all)
	return all
}

// scale changes the size, and returns the reasons of the events that only scaling brings.
func scale(ctx context.Context, m harness.Memcached, size int32, before []string) []string {
	GinkgoHelper()
	earlier := count(ctx, m, before)
	harness.Require(m.SetSpec(ctx, "size", size))
	_, err := m.AwaitDeployment(ctx, harness.ReactBudget, harness.HasReplicas(size, "not-scaled"))
	harness.Require(err)
	const expected = "one Normal event for each scaling, with a reason of its own in CamelCase"
	err = m.AwaitEvents(ctx, func(events []eventsv1.Event) error {
		if err := normalEvent(events, before, expected); err != nil {
			return err
		}
		if total(events, before) == earlier {
			return finding.New("no-event", expected, "none for the scaling to %d", size)
		}
		return nil
	})
	if err != nil && finding.Of(err).Cause == "no-event" && repeated(ctx, m) {
		err = finding.New("same-reason", expected, "another event with the reason of the creation")
	}
	harness.Require(explain(ctx, m, err, expected))
	harness.Require(harness.Throughout(ctx, passTime, func() error {
		if n := count(ctx, m, before) - earlier; n > len(scaled(ctx, m, before)) {
			return finding.New("several-events", expected, "%d for the scaling to %d", n, size)
		}
		return nil
	}))
	return scaled(ctx, m, before)
}

func scaled(ctx context.Context, m harness.Memcached, before []string) []string {
	GinkgoHelper()
	return slices.DeleteFunc(reasons(ctx, m), func(r string) bool { return slices.Contains(before, r) })
}

func count(ctx context.Context, m harness.Memcached, before []string) int {
	GinkgoHelper()
	events, err := m.Events(ctx)
	harness.Require(err)
	return total(events, before)
}

// total is how often events with other reasons than the known ones were recorded.
func total(events []eventsv1.Event, known []string) int {
	n := 0
	for _, e := range events {
		if !slices.Contains(known, e.Reason) {
			n += harness.Times(e)
		}
	}
	return n
}

func repeated(ctx context.Context, m harness.Memcached) bool { return eachOnce(ctx, m) != nil }

// eachOnce wants no Normal event to be told twice.
func eachOnce(ctx context.Context, m harness.Memcached) error {
	events, err := m.Events(ctx)
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, e := range events {
		if e.Type == corev1.EventTypeNormal {
			times[e.Reason] += harness.Times(e)
		}
		if times[e.Reason] > 1 {
			return finding.New("several-events", "one event for one creation", "%s was told %d times", e.Reason, times[e.Reason])
		}
	}
	return nil
}

// toldFailure wants a Warning with a reason that no good news has.
func toldFailure(ctx context.Context, m harness.Memcached, good []string) error {
	const expected = "a Warning on the Memcached whose Deployment belongs to somebody else, with a reason of its own in CamelCase"
	err := m.AwaitEvents(ctx, func(events []eventsv1.Event) error {
		if len(events) == 0 {
			return finding.New("no-event", expected, "none")
		}
		for _, e := range events {
			if e.Type != corev1.EventTypeWarning {
				continue
			}
			switch {
			case !harness.CamelCase.MatchString(e.Reason):
				return finding.New("bad-reason", expected, "reason %q", e.Reason)
			case slices.Contains(good, e.Reason):
				return finding.New("same-reason", expected, "the reason %s, as for the creation", e.Reason)
			}
			return nil
		}
		return finding.New("wrong-type", expected, "%s %s: %s", events[0].Type, events[0].Reason, events[0].Note)
	})
	return explain(ctx, m, err, expected)
}

func nothingNew(ctx context.Context, m harness.Memcached, before []eventsv1.Event) error {
	events, err := m.Events(ctx)
	if err != nil {
		return err
	}
	const expected = "no event after an edit of an annotation"
	if len(events) > len(before) {
		newest := events[len(events)-1]
		return finding.New("new-event", expected, "%s %s: %s", newest.Type, newest.Reason, newest.Note)
	}
	if now, then := total(events, nil), total(before, nil); now > then {
		return finding.New("series", expected, "an earlier event was repeated: %d in all, %d before", now, then)
	}
	return nil
}
