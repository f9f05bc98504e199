package clusters

import (
	"context"
	"errors"
	"testing"
)

// lease asks for the cluster "one" from another goroutine.
func lease(t *testing.T, m *Manager) <-chan func(context.Context) error {
	t.Helper()
	leased := make(chan func(context.Context) error, 1)
	go func() {
		c, release, err := m.Lease(context.WithoutCancel(t.Context()), Spec{Name: "one"})
		if err != nil || c.Name != "one" {
			t.Errorf("Lease() = %+v, %v", c, err)
		}
		leased <- release
	}()
	return leased
}

func TestLeaseEndsWithLastUser(t *testing.T) {
	state, f := t.TempDir(), &fake{}
	first := <-lease(t, newManager(t, state, f))
	second := <-lease(t, newManager(t, state, f)) // the fake refuses to make it twice
	if err := first(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, _ := f.List(t.Context()); len(names) != 1 {
		t.Fatalf("clusters %v while one user is left", names)
	}
	if err := second(t.Context()); err != nil {
		t.Fatal(err)
	}
	if names, _ := f.List(t.Context()); len(names) > 0 {
		t.Errorf("clusters %v after the last user", names)
	}
}

// Who waits for a maker that fails makes the cluster.
func TestLeaseAfterFailedMaker(t *testing.T) {
	began, failure := make(chan struct{}), errors.New("no")
	f := &fake{create: func(context.Context, string) error {
		close(began)
		return failure
	}}
	state, failed, fail := t.TempDir(), make(chan error, 1), make(chan struct{})
	f.delete = func(string) error { <-fail; return nil }
	go func() {
		_, _, err := newManager(t, state, f).Lease(context.WithoutCancel(t.Context()), Spec{Name: "one"})
		failed <- err
	}()
	<-began
	f.create = nil
	second := lease(t, newManager(t, state, f))
	close(fail)
	if err := <-failed; !errors.Is(err, failure) {
		t.Errorf("Lease() = %v, want its own failure", err)
	}
	if err := (<-second)(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLeaseRefusesUnsharedCluster(t *testing.T) {
	m, _ := newFake(t)
	if _, err := m.Create(t.Context(), Spec{Name: "one"}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := m.Lease(t.Context(), Spec{Name: "one"}); !errors.Is(err, ErrExists) {
		t.Errorf("Lease() = %v, want ErrExists", err)
	}
}
