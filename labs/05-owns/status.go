package owns

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// text is the condition Available in a finding.
func text(c *metav1.Condition) string {
	if c == nil {
		return "there is no condition Available"
	}
	return fmt.Sprintf("Available is %s (%s: %s)", c.Status, c.Reason, c.Message)
}

// report wants the condition Available with a status, about the Memcached as it is now. cause is that of another status.
func report(status metav1.ConditionStatus, cause, when string) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		c := env.Condition(obj, "Available")
		switch {
		case c == nil:
			return finding.New("no-condition", "a condition of the type Available in the status", "no such condition")
		case c.Status != status:
			return finding.New(cause, fmt.Sprintf("Available is %s %s", status, when), "%s", text(c))
		case c.ObservedGeneration != obj.GetGeneration():
			return finding.New("wrong-observed-generation",
				fmt.Sprintf("observedGeneration %d, the generation of the Memcached", obj.GetGeneration()),
				"observedGeneration %d", c.ObservedGeneration)
		}
		return nil
	})
}

func beUnavailable() *match.Matcher {
	return report(metav1.ConditionFalse, "not-false", "while a quota keeps one of the Pods from being created")
}

const (
	// overwritten is the reason of the condition that somebody else writes over the operator's.
	overwritten = "Overwritten"
	// otherCondition is the type of a condition that somebody else adds.
	otherCondition = "example.org/Inspected"
)

// overwrite writes the condition Available and another one into the status, as somebody else who may do so.
func overwrite(ctx context.Context, m env.Memcached) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return err
	}
	var conditions []metav1.Condition
	for _, kind := range []string{otherCondition, "Available"} {
		conditions = append(conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: overwritten, Message: "written by a check",
			LastTransitionTime: metav1.Now(), ObservedGeneration: obj.GetGeneration(),
		})
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": conditions}})
	if err != nil {
		return err
	}
	return env.Admin().Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit"))
}

// beRepaired wants Available as the operator has it, and the condition of somebody else as it was. refused is how often the
// manager tried in vain to write it.
func beRepaired(refused int) *match.Matcher {
	const expected = "Available is False again, after somebody else wrote True over it"
	unavailable := beUnavailable()
	return match.Make(func(obj *unstructured.Unstructured) error {
		c := env.Condition(obj, "Available")
		switch {
		case env.Condition(obj, otherCondition) == nil:
			return finding.New("condition-removed", "the condition "+otherCondition+" of somebody else stays", "it is gone")
		case c == nil || c.Reason != overwritten:
			return unavailable.Judge(obj)
		case refused > 0:
			return finding.New("gave-up", expected+", also when the first write of the status fails",
				"the API server refused that write, and nobody tried again")
		}
		return finding.New("not-repaired", expected, "%s", text(c))
	})
}
