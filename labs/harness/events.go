package harness

import (
	"context"
	"fmt"
	"regexp"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
)

// CamelCase is the form of a reason.
var CamelCase = regexp.MustCompile(`^[A-Z][A-Za-z0-9]*$`)

// Events lists the events on the Memcached. Both recorders, the old and the new one, end up there.
func (m Memcached) Events(ctx context.Context) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := suite.admin.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	var own []eventsv1.Event
	for _, e := range list.Items {
		if e.Regarding.Kind == gvk.Kind && e.Regarding.Name == m.Name {
			own = append(own, e)
		}
	}
	return own, nil
}

// Times is how often an event was recorded, whichever recorder counted.
func Times(e eventsv1.Event) int {
	n := 1
	if e.Series != nil {
		n = max(n, int(e.Series.Count))
	}
	return max(n, int(e.DeprecatedCount))
}

// CauseNoEvent is the cause when an event did not come, and nothing is known about why.
const CauseNoEvent = "no-event"

// AwaitEvents waits until the events on the Memcached are as cond wants them. An event that came and is not as it
// should be is waited over for [SecondThought] only; cond tells that none came by [CauseNoEvent].
func (m Memcached) AwaitEvents(ctx context.Context, cond func([]eventsv1.Event) error) error {
	w := wait{
		budget: ReactBudget, list: &eventsv1.EventList{}, opts: []client.ListOption{client.InNamespace(m.Namespace)}, answers: m.Namespace,
		rest: func(last error) time.Duration {
			if finding.Of(last).Cause == CauseNoEvent {
				return IdleLimit
			}
			return SecondThought
		},
	}
	return w.until(ctx, func() error {
		events, err := m.Events(ctx)
		if err != nil {
			return err
		}
		return cond(events)
	})
}

// WhyNoEvent explains an event that did not come, from what can be seen from outside.
func (m Memcached) WhyNoEvent(ctx context.Context, expected string) error {
	for _, r := range Requests(0) {
		if r.Resource == "events" && r.Refused() && r.Namespace == m.Namespace {
			return finding.New("rejected", expected, "the API server did not take it: %s", r)
		}
	}
	var list eventsv1.EventList
	if err := suite.admin.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
		return fmt.Errorf("list events: %w", err)
	}
	for _, e := range list.Items {
		if fromLearner(e) && e.Regarding.Kind != gvk.Kind {
			return finding.New("wrong-object", expected, "an event %s on %s %s", e.Reason, e.Regarding.Kind, e.Regarding.Name)
		}
	}
	f := m.whyPanicked(finding.New(CauseNoEvent, expected, "none"))
	if f.Cause == CausePanicked {
		return f
	}
	// A type that does not exist never gets as far as the API server. Both recorders say so alike, in the log.
	if lines := LogLines("Unsupported event type"); len(lines) > 0 {
		return finding.New("unsupported-type", expected, "none; the recorder refused one: %s", lines[0])
	}
	return f
}

// builtIn are the controllers of Kubernetes that tell about Deployments and Pods.
var builtIn = map[string]bool{
	"deployment-controller": true, "replicaset-controller": true, "default-scheduler": true,
	"kubelet": true, "resource-quota-controller": true, "": true,
}

func fromLearner(e eventsv1.Event) bool {
	return !builtIn[e.ReportingController] && !builtIn[e.DeprecatedSource.Component+e.ReportingController]
}
