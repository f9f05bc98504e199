package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Until waits until cond returns nil. It watches the objects of list (its type and opts say which) and
// asks cond again after every change, and now and then for what no watch announces. When budget is
// over it returns cond's last error. It ends early when the learner's manager has exited or when cond
// returns [Stop].
func Until(ctx context.Context, budget time.Duration, list client.ObjectList, cond func() error, opts ...client.ListOption) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	w, err := suite.admin.Watch(ctx, list, opts...)
	if err != nil {
		return fmt.Errorf("watch %T: %w", list, err)
	}
	defer w.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	changes := w.ResultChan()
	for {
		err := cond()
		var stop stopped
		switch {
		case err == nil:
			return nil
		case errors.As(err, &stop):
			return stop.error
		}
		if f := managerGone(); f != nil {
			return f
		}
		if changes, err = next(ctx, changes, tick.C, err); err != nil {
			return err
		}
	}
}

// next blocks until there is a reason to look again. A closed watch is replaced by the ticker.
func next(ctx context.Context, changes <-chan watch.Event, tick <-chan time.Time, last error) (<-chan watch.Event, error) {
	select {
	case <-ctx.Done():
		return nil, contextError(ctx, last)
	case _, open := <-changes:
		if !open {
			return nil, nil
		}
	case <-tick:
	}
	return changes, nil
}

// Throughout asks cond again and again during period, and returns the first error. It shows that
// something does not happen; establish first that it could.
func Throughout(ctx context.Context, period time.Duration, cond func() error) error {
	end := time.NewTimer(period)
	defer end.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if err := cond(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			return cond()
		case <-tick.C:
		}
	}
}

// managerGone is the finding about a manager that ended by itself, or nil.
func managerGone() *finding.Finding {
	if suite.arena == nil {
		return nil
	}
	return suite.arena.gone()
}
