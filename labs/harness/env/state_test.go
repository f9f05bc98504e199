package env

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/finding"
)

func TestReorderedStatusIsChange(t *testing.T) {
	status := func(types ...string) State {
		var conditions []any
		for _, name := range types {
			conditions = append(conditions, map[string]any{"type": name, "status": "True"})
		}
		return State{status: map[string]any{"conditions": conditions}}
	}
	before := status("Available", "Degraded")
	if err := status("Available", "Degraded").Since(before); err != nil {
		t.Error(err)
	}
	if err := status("Degraded", "Available").Since(before); err == nil || finding.Of(err).Cause != "status-changed" {
		t.Errorf("written anew: %v", err)
	}
}

// The deployment controller may report a change late. A check that waits for rest waits for that report, too.
func TestStateObserved(t *testing.T) {
	for name, tc := range map[string]struct {
		generation, observed int64
		want                 bool
	}{"none": {0, 0, true}, "new": {1, 0, false}, "changed": {3, 2, false}, "seen": {3, 3, true}} {
		s := State{deployment: map[string]any{
			"metadata": map[string]any{"generation": tc.generation}, "status": map[string]any{"observedGeneration": tc.observed},
		}}
		if got := s.observed(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
