// Package recorder holds the checks of lab 6: what the operator did is told in events, once.
package recorder

import (
	"context"
	"fmt"
	"slices"
	"strings"
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
		harness.Require(harness.Throughout(ctx, harness.QuietPeriod, func() error { return toldOnce(ctx, m) }))
	})

	harness.Check("event-scaled", func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		before := reasons(ctx, m)
		up := scale(ctx, m, 3, before) // by more than one: an event for each replica is too many
		down := scale(ctx, m, 1, before)
		harness.Require(sameReason(up, down))
	})

	harness.Check("event-failure", func(ctx SpecContext) {
		m := toldCreated(ctx)
		good := reasons(ctx, m)
		bad := harness.Invent(harness.Rand(), m.Namespace)
		_, err := bad.CreateForeign(ctx)
		harness.Require(err)
		harness.Require(bad.Create(ctx))
		harness.Require(toldFailure(ctx, bad, good))
		harness.Require(bad.Settled(ctx))
		harness.Require(toldOnceOnly(quietThroughEdits(ctx, bad)))
	})

	harness.Check("events-quiet", func(ctx SpecContext) {
		m := toldCreated(ctx)
		atRest(ctx, m)
		harness.Require(quietThroughEdits(ctx, m))
	})
})

// toldCreated makes a Memcached and waits for the event that tells its creation. Its Pods may run: an
// operator is free to warn about Pods that a quota refuses.
func toldCreated(ctx context.Context) harness.Memcached {
	GinkgoHelper()
	m := harness.Invent(harness.Rand(), harness.Namespace(ctx))
	m.Size = 1 // a Pod is about a core-second, and says no more than another one
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
		return finding.New(harness.CauseNoEvent, expected, "none")
	case other.Type != corev1.EventTypeNormal:
		return finding.New("wrong-type", expected, "%s %s: %s", other.Type, other.Reason, other.Note)
	default:
		return finding.New("bad-reason", expected, "reason %q", other.Reason)
	}
}

// explain asks further when an event did not come.
func explain(ctx context.Context, m harness.Memcached, err error, expected string) error {
	if err == nil || finding.Of(err).Cause != harness.CauseNoEvent {
		return err
	}
	return m.WhyNoEvent(ctx, expected)
}

func reasons(ctx context.Context, m harness.Memcached) []string {
	GinkgoHelper()
	events, err := m.Events(ctx)
	harness.Require(err)
	return reasonsOf(events, nil)
}

// scale changes the size, and returns the reasons of the events that tell it: known are those that were told
// before anything was scaled.
func scale(ctx context.Context, m harness.Memcached, size int32, known []string) []string {
	GinkgoHelper()
	before, err := m.Events(ctx)
	harness.Require(err)
	harness.Require(m.SetSpec(ctx, "size", size))
	_, err = m.AwaitDeployment(ctx, harness.ReactBudget, harness.HasReplicas(size, "not-scaled"))
	harness.Require(err)
	expected := fmt.Sprintf("a Normal event for the scaling to %d, with a reason of its own in CamelCase", size)
	err = m.AwaitEvents(ctx, func(events []eventsv1.Event) error {
		return normalEvent(since(events, before), known, expected)
	})
	harness.Require(explain(ctx, m, sameAsCreation(ctx, m, before, err), expected))
	var told []string
	harness.Require(harness.Throughout(ctx, passTime, func() error {
		events, err := m.Events(ctx)
		if err != nil {
			return err
		}
		events = since(events, before)
		told = reasonsOf(events, known)
		if n := total(events, known); n > len(told) {
			return finding.New("several-events", "one Normal event for each scaling", "%d for the scaling to %d: %s", n, size, list(events))
		}
		return nil
	}))
	return told
}

// sameAsCreation gives an event that did not come another cause when one with a reason of the creation came instead.
func sameAsCreation(ctx context.Context, m harness.Memcached, before []eventsv1.Event, err error) error {
	if err == nil || finding.Of(err).Cause != harness.CauseNoEvent {
		return err
	}
	events, listErr := m.Events(ctx)
	if listErr != nil {
		return listErr
	}
	if told := since(events, before); len(told) > 0 {
		return finding.New("same-reason", finding.Of(err).Expected, "another event with the reason of the creation: %s", list(told))
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

// since are the events that are not among those before, or were repeated since then. They count what is new.
func since(events, before []eventsv1.Event) []eventsv1.Event {
	then := map[string]int{}
	for _, e := range before {
		then[e.Name] = harness.Times(e)
	}
	var now []eventsv1.Event
	for _, e := range events {
		if n := harness.Times(e) - then[e.Name]; n > 0 {
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
		all = append(all, fmt.Sprintf("%s %s (%d)", e.Type, e.Reason, harness.Times(e)))
	}
	return strings.Join(all, ", ")
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

// toldOnce wants a Normal event that was told once: the creation. Others may come as often as they like, as long
// as something happens.
func toldOnce(ctx context.Context, m harness.Memcached) error {
	events, err := m.Events(ctx)
	if err != nil {
		return err
	}
	times := map[string]int{}
	for _, e := range events {
		if e.Type == corev1.EventTypeNormal {
			times[e.Reason] += harness.Times(e)
		}
	}
	for _, n := range times {
		if n == 1 {
			return nil
		}
	}
	return finding.New("several-events", "one event for one creation", "%s", list(events))
}

// toldFailure wants a Warning with a reason that no good news has.
func toldFailure(ctx context.Context, m harness.Memcached, good []string) error {
	const expected = "a Warning on the Memcached whose Deployment belongs to somebody else, with a reason of its own in CamelCase"
	err := m.AwaitEvents(ctx, func(events []eventsv1.Event) error {
		if len(events) == 0 {
			return finding.New(harness.CauseNoEvent, expected, "none")
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

// quietThroughEdits edits an annotation several times, each a pass that finds nothing to do, and wants no event for it.
func quietThroughEdits(ctx context.Context, m harness.Memcached) error {
	before, err := m.Events(ctx)
	if err != nil {
		return err
	}
	for i := range edits {
		if err := m.Annotate(ctx, fmt.Sprintf("edit %d", i)); err != nil {
			return err
		}
		if err := harness.Throughout(ctx, passTime, func() error { return nothingNew(ctx, m, before) }); err != nil {
			return err
		}
	}
	return nil
}

// toldOnceOnly gives events that came while a failure lasted the cause under which they are explained.
func toldOnceOnly(err error) error {
	if err == nil || finding.Of(err).Cause == finding.CauseOther {
		return err
	}
	return finding.New("repeated", "a failure that lasts is told once, also when an annotation is edited", "%s", finding.Of(err).Seen)
}

func nothingNew(ctx context.Context, m harness.Memcached, before []eventsv1.Event) error {
	events, err := m.Events(ctx)
	if err != nil {
		return err
	}
	const expected = "no event after an edit of an annotation"
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
