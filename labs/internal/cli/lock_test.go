package cli

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func TestALockLeavesNothing(t *testing.T) {
	a := &App{State: filepath.Join(t.TempDir(), ".lab")}
	unlock, err := a.Lock("name", "this room")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Lock("name", "this room"); exit.Code(err) != exit.UsageError {
		t.Errorf("a second lock gives %v, want a refusal", err)
	}
	unlock()
	if _, err := os.Stat(a.State); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the lock left something: %v", err)
	}
}

// The file of a lock comes and goes; two commands must never believe in two different ones.
func TestOnlyOneCommandHasTheLock(t *testing.T) {
	a := &App{State: filepath.Join(t.TempDir(), ".lab")}
	var inside, had atomic.Int32
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for range 200 {
				unlock, err := a.Lock("name", "this room")
				if err != nil {
					if exit.Code(err) != exit.UsageError {
						t.Error(err)
					}
					continue
				}
				if n := inside.Add(1); n != 1 {
					t.Errorf("%d commands have the lock", n)
				}
				had.Add(1)
				inside.Add(-1)
				unlock()
			}
		})
	}
	group.Wait()
	if had.Load() == 0 {
		t.Error("nobody ever had the lock")
	}
}
