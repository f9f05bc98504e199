package harness

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"github.com/example/operator-lab/labs/internal/finding"
)

// The patience that a right answer gets is not for one that has been found wrong.
func TestHowLongNothingMayHappen(t *testing.T) {
	short := func(error) time.Duration { return time.Second }
	for name, tc := range map[string]struct {
		wait wait
		now  suiteStatus
		want time.Duration
	}{
		"all hold so far":             {wait{}, suiteStatus{}, IdleLimit},
		"another check failed":        {wait{}, suiteStatus{Failed: "pods-run"}, SecondThought},
		"shorter by itself":           {wait{rest: short}, suiteStatus{}, time.Second},
		"shorter by itself, and fail": {wait{rest: short}, suiteStatus{Failed: "pods-run"}, time.Second},
	} {
		if got := tc.wait.idleLimit(tc.now, errors.New("missing")); got != tc.want {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
}

// A manager that sends no request is told so while its start is still being waited for.
func TestSilenceEndsBeforeTheWaitForAStart(t *testing.T) {
	if SilenceBudget >= StartBudget {
		t.Errorf("%v of silence, %v for a start", SilenceBudget, StartBudget)
	}
}

func TestRestBeforeAWaitIsNotHeldAgainstIt(t *testing.T) {
	w, missing := wait{answers: "lab-a"}, errors.New("missing")
	for waited, ends := range map[time.Duration]bool{0: false, IdleLimit: false, IdleLimit + 1: true} {
		if err := w.hopeless(suiteStatus{Idle: time.Hour}, waited, missing); (err != nil) != ends {
			t.Errorf("after %v: %v", waited, err)
		}
	}
}

// What a watch announces is looked at when it is announced, and otherwise not at each tick.
func TestWhenAWaitAsksAgain(t *testing.T) {
	for name, tc := range map[string]struct {
		happens func(changes chan watch.Event)
		after   time.Duration
	}{
		"nothing happens":       {func(chan watch.Event) {}, glance},
		"something has changed": {func(changes chan watch.Event) { changes <- watch.Event{} }, 30 * time.Millisecond},
		"the watch is closed":   {func(changes chan watch.Event) { close(changes) }, pollInterval},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				changes, tick := make(chan watch.Event), time.NewTicker(pollInterval)
				defer tick.Stop()
				began := time.Now()
				go func() {
					time.Sleep(30 * time.Millisecond)
					tc.happens(changes)
				}()
				err := wait{}.pause(t.Context(), &news{changes: changes, tick: tick.C}, began, errors.New("missing"))
				if took := time.Since(began); err != nil || took != tc.after {
					t.Errorf("after %v: %v; want %v", took, err, tc.after)
				}
			})
		})
	}
}

// That nothing happens shows nothing once the manager has exited.
func TestAQuietPeriodEndsWithItsManager(t *testing.T) {
	t.Cleanup(func() { suite.shared.Gone = nil })
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of a period that goes on
	defer cancel()
	const untilFirstTick = time.Millisecond
	if err := Throughout(ctx, untilFirstTick, func() error { return nil }); err != nil {
		t.Errorf("a period in which nothing happens ends with %v", err)
	}
	for _, period := range []time.Duration{time.Hour, untilFirstTick} {
		suite.shared.Gone = nil
		asked := 0
		err := Throughout(ctx, period, func() error {
			if asked++; asked == 2 {
				suite.shared.Gone = finding.New(CauseManagerExited, "the manager goes on running", "it ended by itself")
			}
			return nil
		})
		if err == nil || finding.Of(err).Cause != CauseManagerExited {
			t.Errorf("a period of %v ends with %v, want %s", period, err, CauseManagerExited)
		}
	}
}
