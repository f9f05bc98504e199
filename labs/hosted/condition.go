package hosted

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Condition is a condition of an object of Kueue or agent-sandbox, nil if it has none of that type yet.
func Condition(object *unstructured.Unstructured, conditionType string) *metav1.Condition {
	var has struct {
		Status struct {
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &has); err != nil {
		return nil
	}
	return meta.FindStatusCondition(has.Status.Conditions, conditionType)
}
