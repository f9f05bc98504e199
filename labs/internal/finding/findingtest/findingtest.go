// Package findingtest compares findings in tests.
package findingtest

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Require wants err to be a finding with this cause that says what was seen. An empty cause wants no
// error.
func Require(t testing.TB, err error, cause, seen string) {
	t.Helper()
	if err == nil && cause == "" {
		return
	}
	if err == nil || cause == "" {
		t.Fatalf("got %v, want the cause %q", err, cause)
	}
	if f := finding.Of(err); f.Cause != cause || !strings.Contains(f.Seen, seen) {
		t.Errorf("got %s: %q, want %s: %q", f.Cause, f.Seen, cause, seen)
	}
}
