package recorder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/example/operator-lab/labs/internal/finding/findingtest"
)

func told(eventType, reason string, times int32) eventsv1.Event {
	e := eventsv1.Event{Type: eventType, Reason: reason}
	if times > 1 {
		e.Series = &eventsv1.EventSeries{Count: times}
	}
	return e
}

// What was told before does not count again, and what was repeated counts as often as it was repeated, in a series or not.
func TestTalliesSince(t *testing.T) {
	before := tally([]eventsv1.Event{told("Normal", "Created", 1), told("Normal", "Synced", 2)})
	after := tally([]eventsv1.Event{told("Normal", "Synced", 4), told("Normal", "Created", 1), told("Normal", "Synced", 1), told("Warning", "Failed", 1)})
	if got := after.since(before).String(); got != "Normal Synced (3), Warning Failed (1)" {
		t.Errorf("news: %s", got)
	}
	if got := after.since(before).without(before).String(); got != "Warning Failed (1)" {
		t.Errorf("news of other reasons: %s", got)
	}
}

func TestTell(t *testing.T) {
	for name, tc := range map[string]struct {
		event eventsv1.Event
		cause string
	}{
		"a warning":      {told("Warning", "Scaled", 1), "wrong-type"},
		"a sentence":     {told("Normal", "It was scaled", 1), "bad-reason"},
		"a known reason": {told("Normal", "Created", 2), "same-reason"},
		"right":          {told("Normal", "Scaled", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := tell(tally([]eventsv1.Event{tc.event}), corev1.EventTypeNormal, tallies{{Reason: "Created"}}, "an event")
			findingtest.Require(t, err, tc.cause, tc.event.Reason)
		})
	}
	findingtest.Require(t, tell(nil, corev1.EventTypeNormal, nil, "an event"), "no-event", "none")
}
