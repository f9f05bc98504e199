package owns

import (
	"context"
	"encoding/json"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/faults"
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

// condition reads the condition Available, which has to be there and to be complete.
func condition(obj *unstructured.Unstructured) (*metav1.Condition, error) {
	c, err := env.Condition(obj, "Available")
	if err != nil {
		return nil, err
	}
	const expected = "a condition of the type Available in the status"
	switch {
	case c == nil:
		return nil, finding.New("no-condition", expected, "no such condition")
	case c.ObservedGeneration != obj.GetGeneration():
		return nil, finding.New("wrong-observed-generation", fmt.Sprintf("observedGeneration %d, the generation of the Memcached", obj.GetGeneration()),
			"observedGeneration %d", c.ObservedGeneration)
	}
	return c, nil
}

// wantStatus wants the condition Available with a status.
func wantStatus(obj *unstructured.Unstructured, want metav1.ConditionStatus, cause, expected string) error {
	c, err := condition(obj)
	if err == nil && c.Status != want {
		err = finding.New(cause, expected, "%s", text(c))
	}
	return err
}

func available(obj *unstructured.Unstructured) error {
	return wantStatus(obj, metav1.ConditionTrue, "not-true", "Available is True while all Pods are available")
}

func unavailable(obj *unstructured.Unstructured) error {
	return wantStatus(obj, metav1.ConditionFalse, "not-false", "Available is False while a quota keeps one of the Pods from being created")
}

// lost wants the condition of a Memcached that was available and is no more, without any edit of it.
func lost(obj *unstructured.Unstructured) error {
	return wantStatus(obj, metav1.ConditionFalse, "stays-true", "Available is False again after all Pods were lost")
}

// reportsRefusal wants a Memcached that has no Deployment to say so.
func reportsRefusal(obj *unstructured.Unstructured) error {
	const expected = "Available is False while the API server refuses to create the Deployment"
	if c, err := env.Condition(obj, "Available"); err == nil && c == nil {
		return finding.New("not-told", expected, "%s", text(c))
	}
	return wantStatus(obj, metav1.ConditionFalse, "not-told", expected)
}

const (
	// overwritten is the reason of the condition that somebody else writes over the operator's.
	overwritten = "Overwritten"
	// otherCondition is the type of a condition that somebody else adds.
	otherCondition = "example.org/Inspected"
)

// overwriteWhileRefused writes over the condition Available, adds one of another type, and edits the Deployment, so that there
// is a pass whatever the manager does not want to hear of. The API server takes no writes of Memcacheds from the manager
// meanwhile; those of the Deployment go on, as an error of theirs would have the status tried again, too. It returns how often
// the manager tried in vain.
func overwriteWhileRefused(ctx context.Context, m env.Memcached) (refused int) {
	GinkgoHelper()
	since := env.RequestCount()
	Expect(faults.RefuseWrites(ctx, m.Namespace, apiproxy.NoMemcacheds, env.FirstTry, 1, func() error {
		if err := overwrite(ctx, m); err != nil {
			return err
		}
		// A label, because an annotation would give the Deployment another generation, which is news for a status, too.
		if err := edit(ctx, m, func(d *appsv1.Deployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, foreignKey, foreignValue) }); err != nil {
			return err
		}
		return m.WaitIdle(ctx) // else the news of the edit would repair what the first try could not
	})).To(Succeed())
	for _, w := range m.Writes(since) {
		if w.Disturbed {
			refused++
		}
	}
	return refused
}

// overwrite writes the condition Available and another one into the status, as somebody else who may do so.
func overwrite(ctx context.Context, m env.Memcached) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return fmt.Errorf("get Memcached %s: %w", m, err)
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
		return fmt.Errorf("write patch: %w", err)
	}
	if err := env.Admin().Status().Patch(ctx, obj, client.RawPatch(types.MergePatchType, patch), client.FieldOwner("kubectl-edit")); err != nil {
		return fmt.Errorf("patch the status of %s: %w", m, err)
	}
	return nil
}

// beRepaired wants Available as the operator has it, and the condition of somebody else as it was. refused is how often the
// manager tried in vain to write it.
func beRepaired(refused int) *match.Matcher {
	const expected = "Available is False again, after somebody else wrote True over it"
	return match.Make(func(obj *unstructured.Unstructured) error {
		other, err := env.Condition(obj, otherCondition)
		if err != nil {
			return err
		}
		c, err := env.Condition(obj, "Available")
		switch {
		case err != nil:
			return err
		case other == nil:
			return finding.New("condition-removed", "the condition "+otherCondition+" of somebody else stays", "it is gone")
		case c == nil || c.Reason != overwritten:
			return unavailable(obj)
		case refused > 0:
			return finding.New("gave-up", expected+", also when the first write of the status fails",
				"the API server refused that write, and nobody tried again")
		}
		return finding.New("not-repaired", expected, "Available is still True, with the reason %s", overwritten)
	})
}
