package recorder

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/internal/finding"
)

func event(name, eventType, reason string, times int32) eventsv1.Event {
	e := eventsv1.Event{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Type: eventType, Reason: reason}
	if times > 1 {
		e.Series = &eventsv1.EventSeries{Count: times}
	}
	return e
}

// What was told before does not count again, and what was repeated counts as often as it was repeated.
func TestSince(t *testing.T) {
	before := []eventsv1.Event{event("a", "Normal", "Created", 1), event("b", "Normal", "Synced", 2)}
	after := []eventsv1.Event{event("a", "Normal", "Created", 1), event("b", "Normal", "Synced", 5), event("c", "Warning", "Scaled", 1)}
	news := since(after, before)
	if got := list(news); got != "Normal Synced (3), Warning Scaled (1)" {
		t.Errorf("news: %s", got)
	}
	if got := total(news, []string{"Synced"}); got != 1 {
		t.Errorf("%d besides the known ones", got)
	}
	if diff := cmp.Diff([]string{"Scaled"}, reasonsOf(news, []string{"Synced"})); diff != "" {
		t.Error(diff)
	}
	if news := since(before, before); len(news) > 0 {
		t.Errorf("nothing happened, and this was told: %s", list(news))
	}
	rewritten, anew := before[0], before[0]
	rewritten.ResourceVersion, anew.UID = "2", "another"
	for name, e := range map[string]eventsv1.Event{"written again": rewritten, "deleted, and made again": anew} {
		if got := list(since([]eventsv1.Event{e, before[1]}, before)); got != "Normal Created (1)" {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// An operator may tell more than the scaling, as long as one reason stands for both directions.
func TestSameReason(t *testing.T) {
	for name, tc := range map[string]struct {
		up, down []string
		cause    string
	}{
		"one":              {[]string{"Scaled"}, []string{"Scaled"}, ""},
		"one of several":   {[]string{"Growing", "Scaled"}, []string{"Scaled", "Shrinking"}, ""},
		"one for each way": {[]string{"ScaledUp"}, []string{"ScaledDown"}, "different-reasons"},
	} {
		got := ""
		if err := sameReason(tc.up, tc.down); err != nil {
			got = finding.Of(err).Cause
		}
		if got != tc.cause {
			t.Errorf("%s: cause %q, want %q", name, got, tc.cause)
		}
	}
}

func TestNormalEvent(t *testing.T) {
	known := []string{"Created"}
	for name, tc := range map[string]struct {
		events []eventsv1.Event
		cause  string
	}{
		"none":              {nil, "no-event"},
		"only a known one":  {[]eventsv1.Event{event("a", "Normal", "Created", 2)}, "no-event"},
		"a warning":         {[]eventsv1.Event{event("a", "Warning", "Scaled", 1)}, "wrong-type"},
		"a sentence":        {[]eventsv1.Event{event("a", "Normal", "It was scaled", 1)}, "bad-reason"},
		"right":             {[]eventsv1.Event{event("a", "Normal", "Scaled", 1)}, ""},
		"right, and others": {[]eventsv1.Event{event("a", "Warning", "Slow", 1), event("b", "Normal", "Scaled", 1)}, ""},
	} {
		got := ""
		if err := normalEvent(tc.events, known, "one"); err != nil {
			got = finding.Of(err).Cause
		}
		if got != tc.cause {
			t.Errorf("%s: cause %q, want %q", name, got, tc.cause)
		}
	}
}
