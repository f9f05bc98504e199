package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// glance is how often a wait asks its condition again although no watch has announced a change. Asking costs requests,
// which the API server answers with the same two cores as everybody else's.
const glance = 300 * time.Millisecond

// Until waits until cond returns nil. It watches the objects of list (its type and opts say which) and
// asks cond again after every change, and now and then for what no watch announces. When budget is
// over it returns cond's last error. It ends early when the learner's manager has exited, when a check
// that this one requires has failed, or when cond returns [Stop].
func Until(ctx context.Context, budget time.Duration, list client.ObjectList, cond func() error, opts ...client.ListOption) error {
	return wait{budget: budget, list: list, opts: opts}.until(ctx, cond)
}

// UntilAnswered is [Until] for what the manager alone has to do in one namespace. It also ends when
// nothing has happened there for [IdleLimit].
func UntilAnswered(ctx context.Context, budget time.Duration, namespace string, list client.ObjectList, cond func() error) error {
	return wait{budget: budget, list: list, opts: []client.ListOption{client.InNamespace(namespace)}, answers: namespace}.until(ctx, cond)
}

// UntilKubernetes is [Until] for what Kubernetes itself takes its time with, whoever wrote the operator. Once
// any other check has failed the verdict is clear, and nobody is kept waiting for the rest of it.
func UntilKubernetes(ctx context.Context, budget time.Duration, list client.ObjectList, cond func() error, opts ...client.ListOption) error {
	return wait{budget: budget, list: list, opts: opts, idle: true}.until(ctx, cond)
}

// wait is one wait of a check.
type wait struct {
	budget  time.Duration
	list    client.ObjectList
	opts    []client.ListOption
	answers string // the namespace in which the manager has to act
	idle    bool   // given up when another check has failed, after patience
	// rest is how long nothing may happen in that namespace, given what is still missing; nil is [IdleLimit]
	rest func(last error) time.Duration
	// patience is how long it waits all the same, so that the check can still see what it is there for
	patience time.Duration
}

func (w wait) until(ctx context.Context, cond func() error) error {
	ctx, cancel := context.WithTimeout(ctx, w.budget)
	defer cancel()
	watching, err := suite.admin.Watch(ctx, w.list, w.opts...)
	if err != nil {
		return fmt.Errorf("watch %T: %w", w.list, err)
	}
	defer watching.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	n := &news{changes: watching.ResultChan(), tick: tick.C}
	started := time.Now()
	for {
		err := cond()
		var stop stopped
		switch {
		case err == nil:
			return nil
		case errors.As(err, &stop):
			return stop.error
		}
		if final := w.pause(ctx, n, started, err); final != nil {
			return final
		}
	}
}

// news is what a wait listens to.
type news struct {
	changes <-chan watch.Event // nil when the watch was closed
	tick    <-chan time.Time
}

// pause returns when there is a reason to ask again, or with the error to end with. last is what was missing.
func (w wait) pause(ctx context.Context, n *news, started time.Time, last error) error {
	for asked := time.Now(); ; {
		if final := w.hopeless(status(w.answers), time.Since(started), last); final != nil {
			return final
		}
		select {
		case <-ctx.Done():
			return contextError(ctx, last)
		case _, open := <-n.changes:
			if open {
				return nil
			}
			n.changes = nil
		case <-n.tick:
			if n.changes == nil || time.Since(asked) >= glance {
				return nil
			}
		}
	}
}

// hopeless is the error to end with when waiting longer makes no sense, or nil. last is what was missing.
func (w wait) hopeless(s suiteStatus, waited time.Duration, last error) error {
	by := s.inVain(ginkgo.CurrentSpecReport())
	switch {
	case s.Gone != nil:
		return s.Gone
	case by != "":
		return blocked(by)
	case w.idle && s.Failed != "" && waited >= w.patience:
		return blocked(s.Failed)
	case w.answers != "" && min(s.Idle, waited) > w.idleLimit(s, last): // what was before is another wait's
		return last
	}
	return nil
}

// idleLimit is how long nothing may happen. Once another check has failed the verdict is clear, and what else is
// wrong may be told sooner.
func (w wait) idleLimit(s suiteStatus, last error) time.Duration {
	limit := IdleLimit
	if w.rest != nil {
		limit = w.rest(last)
	}
	if s.Failed != "" {
		limit = min(limit, SecondThought)
	}
	return limit
}

// Throughout asks cond again and again during period, and returns the first error. It shows that
// something does not happen; establish first that it could. It ends early when the manager has exited, and
// when another check has failed for whose sake this one need not go on.
func Throughout(ctx context.Context, period time.Duration, cond func() error) error {
	end := time.NewTimer(period)
	defer end.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for ended := false; ; {
		if err := cond(); err != nil {
			return err
		}
		s := status("")
		switch by := s.inVain(ginkgo.CurrentSpecReport()); {
		case s.Gone != nil:
			return s.Gone
		case ended:
			return nil
		case by != "":
			return blocked(by)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-end.C:
			ended = true
		case <-tick.C:
		}
	}
}
