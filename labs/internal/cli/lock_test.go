package cli

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func TestLockRefusesSecond(t *testing.T) {
	a := &App{State: t.TempDir()}
	unlock, err := a.Lock("name", "this room")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Lock("name", "this room"); exit.Code(err) != exit.UsageError {
		t.Errorf("a second lock gives %v, want a refusal", err)
	}
	if _, err := a.Lock("other", "another room"); err != nil {
		t.Error(err)
	}
	unlock()
	if _, err := a.Lock("name", "this room"); err != nil {
		t.Errorf("a lock that was released gives %v", err)
	}
}
