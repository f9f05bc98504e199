package pool

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAtRestClustersWaitAndNoneRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 2)
		h.fake.pause = time.Second
		ctx, cancel := context.WithTimeout(t.Context(), 10*creation)
		defer cancel()
		for range 2 {
			if err := h.Rest(ctx); err != nil {
				t.Fatal(err)
			}
			if running := h.fake.running(); h.Waiting() != 2 || len(running) > 0 {
				t.Errorf("%d wait, %q run, want two that wait and none that runs", h.Waiting(), running)
			}
			name, _, _ := h.claim(t)
			if err := h.owned.Delete(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestAPoolThatCannotComeToRestSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, 1)
		h.fake.mu.Lock()
		h.fake.fails = errors.New("no space left")
		h.fake.mu.Unlock()
		if err := h.Rest(t.Context()); !errors.Is(err, h.fake.fails) {
			t.Errorf("Rest() = %v, want what the creation failed with", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := h.Rest(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Rest() = %v, want the caller's end", err)
		}
	})
}
