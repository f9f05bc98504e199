package env

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// A second that the operator gets is a second in which writes are done, whatever the clock on the wall says.
func TestAClockOfTimeThatIsServed(t *testing.T) {
	for name, tc := range map[string]struct {
		write    func() error
		min, max time.Duration // after ten seconds
	}{
		"a quiet machine":  {func() error { time.Sleep(10 * time.Millisecond); return nil }, 9 * time.Second, 11 * time.Second},
		"a starved one":    {func() error { time.Sleep(2 * time.Second); return nil }, time.Second, 2 * time.Second},
		"one that is away": {func() error { return errors.New("connection refused") }, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				clock := &apiServerClock{write: tc.write}
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				clock.run(ctx)
				if got := clock.read(); got < tc.min || got > tc.max {
					t.Errorf("%v were served of 10 s, want %v to %v", got, tc.min, tc.max)
				}
			})
		})
	}
}

// What a check measures time with lies where the rule for graded managers lets nobody write.
func TestTheClockIsOutOfReach(t *testing.T) {
	before := current.admin
	t.Cleanup(func() { current.admin = before })
	current.admin = fake.NewClientBuilder().Build()
	if _, err := APIServerClock(t.Context()); err != nil {
		t.Fatal(err)
	}
	var marks corev1.ConfigMapList
	if err := current.admin.List(t.Context(), &marks, client.InNamespace(systemNamespace)); err != nil || len(marks.Items) != 1 {
		t.Errorf("%d marks in %s, and %v", len(marks.Items), systemNamespace, err)
	}
}
