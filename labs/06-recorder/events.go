package recorder

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/internal/finding"
)

// event is how often something was told, whether as several events or as a series.
type event struct {
	Type, Reason string
	times        int
}

// tallies are what was told on a Memcached, by reason.
type tallies []event

// tally counts events.
func tally(events []eventsv1.Event) tallies {
	var t tallies
	for _, e := range events {
		i := t.index(e.Type, e.Reason)
		if i < 0 {
			t, i = append(t, event{Type: e.Type, Reason: e.Reason}), len(t)
		}
		times := max(1, int(e.DeprecatedCount)) // each recorder has its own way to count
		if e.Series != nil {
			times = max(times, int(e.Series.Count))
		}
		t[i].times += times
	}
	slices.SortFunc(t, func(a, b event) int { return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Reason, b.Reason)) })
	return t
}

// eventsOf counts the events on a Memcached.
func eventsOf(ctx context.Context, m env.Memcached) tallies {
	GinkgoHelper()
	events, err := m.Events(ctx)
	Expect(err).To(Succeed())
	return tally(events)
}

func (t tallies) index(eventType, reason string) int {
	return slices.IndexFunc(t, func(e event) bool { return e.Type == eventType && e.Reason == reason })
}

// since is what was told since then.
func (t tallies) since(then tallies) (news tallies) {
	for _, e := range t {
		if i := then.index(e.Type, e.Reason); i >= 0 {
			e.times -= then[i].times
		}
		if e.times > 0 {
			news = append(news, e)
		}
	}
	return news
}

// good are the Normal ones.
func (t tallies) good() tallies {
	return slices.DeleteFunc(slices.Clone(t), func(e event) bool { return e.Type != corev1.EventTypeNormal })
}

// without leaves out the reasons of others.
func (t tallies) without(others tallies) tallies {
	return slices.DeleteFunc(slices.Clone(t), func(e event) bool { return slices.Contains(others.reasons(), e.Reason) })
}

func (t tallies) reasons() (all []string) {
	for _, e := range t {
		all = append(all, e.Reason)
	}
	return all
}

// times is how often events of a type were told.
func (t tallies) times(eventType string) (n int) {
	for _, e := range t {
		if e.Type == eventType {
			n += e.times
		}
	}
	return n
}

func (t tallies) String() string {
	var all []string
	for _, e := range t {
		all = append(all, fmt.Sprintf("%s %s (%d)", e.Type, e.Reason, e.times))
	}
	return strings.Join(all, ", ")
}

// camelCase is the form of a reason.
var camelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// tell wants an event of a type, with a reason in CamelCase that those of others do not have.
func tell(t tallies, eventType string, others tallies, expected string) error {
	f := finding.New("no-event", expected, "none")
	for _, e := range t {
		cause := ""
		switch {
		case e.Type != eventType:
			cause = "wrong-type"
		case !camelCase.MatchString(e.Reason):
			cause = "bad-reason"
		case slices.Contains(others.reasons(), e.Reason):
			cause = "same-reason"
		default:
			return nil
		}
		f = finding.New(cause, expected, "%s", t)
	}
	return f
}
