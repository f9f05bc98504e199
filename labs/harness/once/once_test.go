package once_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/harness/once"
)

func TestEverybodyGetsTheFirstResult(t *testing.T) {
	dir := t.TempDir()
	var made atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			data, err := once.Do(t.Context(), dir, "answer", func() ([]byte, error) {
				made.Add(1)
				time.Sleep(20 * time.Millisecond) // long enough for the others to arrive
				return []byte("42"), nil
			})
			if err != nil || string(data) != "42" {
				t.Errorf("Do = %q, %v; want 42", data, err)
			}
		})
	}
	all.Wait()
	if made.Load() != 1 {
		t.Errorf("made %d times, want once", made.Load())
	}
}

func TestKeysAndFoldersAreSeparate(t *testing.T) {
	dir := t.TempDir()
	for _, at := range []struct{ dir, key string }{{dir, "a"}, {dir, "b"}, {t.TempDir(), "a"}} {
		data, err := once.Do(t.Context(), at.dir, at.key, func() ([]byte, error) { return []byte(at.dir + at.key), nil })
		if err != nil || string(data) != at.dir+at.key {
			t.Errorf("Do(%s, %s) = %q, %v", at.dir, at.key, data, err)
		}
	}
}

func TestAnErrorIsNotRemembered(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("broken")
	if _, err := once.Do(t.Context(), dir, "k", func() ([]byte, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Fatalf("Do = %v, want %v", err, broken)
	}
	data, err := once.Do(t.Context(), dir, "k", func() ([]byte, error) { return []byte("fixed"), nil })
	if err != nil || string(data) != "fixed" {
		t.Errorf("Do after an error = %q, %v; want fixed", data, err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	dir, busy, done := t.TempDir(), make(chan struct{}), make(chan struct{})
	defer close(done)
	go func() {
		_, _ = once.Do(t.Context(), dir, "k", func() ([]byte, error) { close(busy); <-done; return nil, nil })
	}()
	<-busy
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := once.Do(ctx, dir, "k", func() ([]byte, error) { return nil, nil }); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Do while another is at it = %v, want the end of its context", err)
	}
}
