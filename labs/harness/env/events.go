package env

import (
	"context"
	"fmt"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/trace"
)

// Events lists the events on the Memcached. Both recorders, the old and the new one, end up there.
func (m Memcached) Events(ctx context.Context) ([]eventsv1.Event, error) {
	var list eventsv1.EventList
	if err := current.admin.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
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
func Times(e eventsv1.Event) int { return trace.Times(&e) }

// CauseNoEvent is the cause when an event did not come, and nothing is known about why.
const CauseNoEvent = "no-event"

// EventsOf lists the events on the Memcached when it is polled: use it with Eventually and Consistently.
func EventsOf(m Memcached) func(context.Context) ([]eventsv1.Event, error) {
	return polled(m.Namespace, eventsInterval, m.Events)
}
