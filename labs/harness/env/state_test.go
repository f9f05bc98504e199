package env

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/operator-lab/labs/internal/finding"
)

func TestStatusInAnotherOrderHasChanged(t *testing.T) {
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

// The deployment controller's news of a change come as late as it likes. Whoever waits for quiet waits for them, too.
func TestStateObserved(t *testing.T) {
	d := &appsv1.Deployment{}
	for name, tc := range map[string]struct {
		generation, observed int64
		want                 bool
	}{"new": {1, 0, false}, "changed": {3, 2, false}, "seen": {3, 3, true}} {
		d.Generation, d.Status.ObservedGeneration = tc.generation, tc.observed
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
		if err != nil {
			t.Fatal(err)
		}
		if got := (State{deployment: object}).observed(); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if !(State{}).observed() {
		t.Error("no Deployment is waited for")
	}
}
