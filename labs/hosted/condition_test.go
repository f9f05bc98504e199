package hosted

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestAnEngineSaysHowItsObjectsAre(t *testing.T) {
	object := &unstructured.Unstructured{}
	err := object.UnmarshalJSON([]byte(`{"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "status": {"pendingWorkloads": 0, "conditions": [
		{"type": "Other", "status": "True"},
		{"type": "Active", "status": "False", "reason": "FlavorNotFound", "message": "no flavor", "lastTransitionTime": "2026-01-01T00:00:00Z", "observedGeneration": 1}
	]}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c := Condition(object, "Active"); c == nil || c.Status != metav1.ConditionFalse || c.Reason != "FlavorNotFound" || c.Message != "no flavor" {
		t.Errorf("Active is %+v", c)
	}
	if c := Condition(object, "Ready"); c != nil {
		t.Errorf("Ready, which is not there, is %+v", c)
	}
	if c := Condition(&unstructured.Unstructured{}, "Ready"); c != nil {
		t.Errorf("Ready of an object without status is %+v", c)
	}
}
