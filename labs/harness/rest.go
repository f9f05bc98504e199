package harness

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	// restWrites is how many mutating requests a manager may send about one Memcached in a
	// [QuietPeriod] at rest. A loop sends hundreds; an operator that applies again on each pass, a few.
	restWrites = 10
	// failures is how many errors for one name within [failurePeriod] are "it goes on failing". A
	// right operator can meet one or two: its cache is a moment behind.
	failures      = 5
	failurePeriod = 2 * time.Second
	// settleFor is how long nothing may change before a world is taken to be at rest.
	settleFor = time.Second
	// restless is how many changes in a row show that a world does not come to rest. One that does changes
	// with each of its Pods, and there are at most five.
	restless = 12
	// settleBudget is how long a world may take to come to rest.
	settleBudget = 12 * time.Second
	// lullFor is how long nothing changes in a [Memcached.Lull], and lullBudget how long it is waited for.
	lullFor    = 500 * time.Millisecond
	lullBudget = 3 * time.Second
)

// world is what an operator may write about one Memcached.
type world struct {
	deployment map[string]any // nil when there is none
	status     any
}

// look reads both objects. Their resourceVersion stays in: the API server changes it on every real
// change, and on no other.
func (m Memcached) look(ctx context.Context) (world, error) {
	var w world
	d := &appsv1.Deployment{}
	err := suite.admin.Get(ctx, m.Key(), d)
	if err != nil && !apierrors.IsNotFound(err) {
		return w, fmt.Errorf("get Deployment %s: %w", m, err)
	}
	if err == nil {
		if w.deployment, err = runtime.DefaultUnstructuredConverter.ToUnstructured(d); err != nil {
			return w, fmt.Errorf("read Deployment %s: %w", m, err)
		}
		unstructured.RemoveNestedField(w.deployment, "metadata", "managedFields")
	}
	obj, err := m.Get(ctx)
	if err != nil {
		return w, fmt.Errorf("get Memcached %s: %w", m, err)
	}
	w.status = obj.Object["status"]
	return w, nil
}

// compare is a finding about the first thing that moved between two looks, or nil.
func compare(before, after world) error {
	const expected = "nothing changes, as nothing was asked for"
	if moved := changes(before.deployment, after.deployment); len(moved) > 0 {
		return finding.New("deployment-changed", expected, "the Deployment changed:\n%s", fieldLines(moved)).With(telling(moved)...)
	}
	if moved := changes(before.status, after.status); len(moved) > 0 {
		cause := "status-changed"
		if onlyTimes(moved) {
			cause = "timestamps-move"
		}
		return finding.New(cause, expected, "the status of the Memcached changed:\n%s", fieldLines(moved)).With(telling(moved)...)
	}
	return nil
}

func changes(before, after any) []finding.Field {
	return generate.Fields(generate.Compare(after, before))
}

func fieldLines(moved []finding.Field) string {
	var all []string
	for _, f := range moved {
		all = append(all, f.String())
	}
	return strings.Join(all, "\n")
}

// telling are the differences that a reader can do something about. resourceVersion and generation move with
// every write; they are shown when nothing else did.
func telling(moved []finding.Field) []finding.Field {
	chosen := slices.DeleteFunc(slices.Clone(moved), func(f finding.Field) bool {
		return f.Path == "metadata.resourceVersion" || strings.HasSuffix(strings.ToLower(f.Path), "generation")
	})
	if len(chosen) == 0 {
		return moved
	}
	return chosen
}

func onlyTimes(moved []finding.Field) bool {
	return !slices.ContainsFunc(moved, func(f finding.Field) bool { return !strings.Contains(f.Path, "lastTransitionTime") })
}

// Settled waits until neither the Deployment nor the status has changed for a second.
func (m Memcached) Settled(ctx context.Context) error {
	return m.still(ctx, settleFor, settleBudget)
}

// Lull is [Memcached.Settled] for half a second, and for three at most: what moves on is another check's business.
// A check that changes something begins with it, because an operator that is at work for another reason just then
// answers what it has not heard of.
func (m Memcached) Lull(ctx context.Context) error {
	err := m.still(ctx, lullFor, lullBudget)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil, errors.Is(err, context.DeadlineExceeded), finding.Of(err).Cause != finding.CauseOther:
		return nil
	}
	return err
}

// still waits until nothing has changed for period, within budget.
func (m Memcached) still(ctx context.Context, period, budget time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, budget)
	defer cancel()
	for n := 1; ; n++ {
		before, err := m.look(ctx)
		if err != nil {
			return err
		}
		err = Throughout(ctx, period, func() error {
			after, err := m.look(ctx)
			if err != nil {
				return err
			}
			return compare(before, after)
		})
		if err == nil || finding.Of(err).Cause == finding.CauseOther || ctx.Err() != nil {
			return err
		}
		if overdue(ctx, period) || n == restless {
			return err
		}
	}
}

// overdue says whether ctx leaves no time for another look that takes period.
func overdue(ctx context.Context, period time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return ok && time.Until(deadline) < period+pollInterval
}

// Unchanged does something that asks for no work, and holds the manager to it: the Deployment and the
// status stay as they are, and hardly any write is sent.
func (m Memcached) Unchanged(ctx context.Context, act func() error) error {
	before, err := m.look(ctx)
	if err != nil {
		return err
	}
	since := Now()
	if err := act(); err != nil {
		return err
	}
	quiet := func() error {
		return Throughout(ctx, QuietPeriod, func() error {
			after, err := m.look(ctx)
			if err != nil {
				return err
			}
			return compare(before, after)
		})
	}
	if err := quiet(); err != nil {
		return err
	}
	if n := len(m.Writes(since)); n > restWrites/2 && n <= restWrites {
		// A manager that comes back five times a second gets no further on a slow machine. One that is at rest by now
		// sends nothing more.
		if err := quiet(); err != nil {
			return err
		}
	}
	return m.fewWrites(since)
}

func (m Memcached) fewWrites(since int) error {
	writes := m.Writes(since)
	if len(writes) > restWrites {
		return finding.New("too-many-writes", fmt.Sprintf("at most %d writes in %s of rest", restWrites, QuietPeriod),
			"%d, the last of them: %s", len(writes), writes[len(writes)-1])
	}
	return nil
}

// StaysQuietAfter does something, and listens whether the manager goes on failing for the Memcached from then on: in
// its log, and in what the API server refuses it. The first errors come within milliseconds and each pause is twice
// the one before, so those that come while act is still under way count, too.
func (m Memcached) StaysQuietAfter(ctx context.Context, act func() error) error {
	since, before := Now(), m.errorLines()
	if err := act(); err != nil {
		return err
	}
	return Throughout(ctx, failurePeriod, func() error {
		lines, refused := m.errorLines(), m.refusals(since)
		if n := max(len(lines)-len(before), len(refused)); n >= failures {
			last := append(lines, refused...)
			return finding.New("keeps-failing", fmt.Sprintf("fewer than %d errors for one name within %s", failures, failurePeriod),
				"%d, the last of them: %s", n, diagnostics.Shorten(last[len(last)-1]))
		}
		return nil
	})
}

// errorLines are the manager's log lines that name the Memcached and an error. The name was drawn for
// this check, so that nobody else writes it.
func (m Memcached) errorLines() []string {
	var found []string
	for _, line := range LogLines(m.Name) {
		if strings.Contains(strings.ToLower(line), "error") {
			found = append(found, line)
		}
	}
	return found
}

func (m Memcached) refusals(since int) []string {
	var refused []string
	for _, w := range m.Writes(since) {
		if w.Refused() {
			refused = append(refused, w.String())
		}
	}
	return refused
}

// Restart stops the manager and starts it with the given operand image.
func Restart(ctx context.Context, image string) error {
	return restart(ctx, image, func() error { return nil })
}

// WhileStopped does something while no manager runs, and starts it again.
func WhileStopped(ctx context.Context, act func() error) error {
	return restart(ctx, suite.config.MemcachedImage, act)
}

// restart returns when the manager knows what there is: before that, that it does nothing shows nothing.
func restart(ctx context.Context, image string, meanwhile func() error) error {
	m, err := TheManager()
	if err != nil {
		return err
	}
	if err := m.Stop(ctx); err != nil {
		return err
	}
	acted := meanwhile()
	if err := m.Start(image); err != nil {
		return err
	}
	suite.env.awaitCaches(ctx)
	return acted
}

// restPasses is how many passes a manager may make in a [QuietPeriod] at rest. A manager that polls
// every second makes more, however few objects it has.
const restPasses = 2

// HardlyReconciles wants the manager's own counter of passes to come to rest, for a check whose only Memcached this
// is: either while act, which takes at least a [QuietPeriod] and asks for no work, is running, or in
// another such period right after it. The counter is evidence: a manager without it is not judged by it. The error of
// act comes first.
func (m Memcached) HardlyReconciles(ctx context.Context, act func() error) error {
	made, err := passesMade(ctx, act)
	if err != nil || made <= restPasses {
		return err
	}
	made, err = passesMade(ctx, func() error { return Throughout(ctx, QuietPeriod, func() error { return nil }) })
	if err != nil || made <= restPasses {
		return err
	}
	return finding.New("polling", "a manager that sleeps while nothing happens", "%d passes in %s of rest", made, QuietPeriod)
}

// passesMade is how many passes the manager made during act, 0 when it does not count them.
func passesMade(ctx context.Context, act func() error) (int, error) {
	manager, err := TheManager()
	if err != nil {
		return 0, err
	}
	before := manager.passes(ctx)
	if err := act(); err != nil || before < 0 {
		return 0, err
	}
	return manager.passes(ctx) - before, nil
}
