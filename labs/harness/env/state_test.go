package env

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The deployment controller's news of a change come as late as it likes. Whoever waits for quiet waits for them, too.
func TestADeploymentIsQuietOnceItIsObserved(t *testing.T) {
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
