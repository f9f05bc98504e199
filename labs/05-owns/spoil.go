package owns

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

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

const (
	// spoiled is the reason of the condition that somebody else writes over the operator's.
	spoiled = "Overwritten"
	// otherCondition is the type of a condition that somebody else adds, and lateCondition that of one that comes at the moment at
	// which the manager writes the status.
	otherCondition, lateCondition = "example.org/Inspected", "example.org/Audited"
)

// spoilWhileRefused writes over the condition Available, adds one of another type, and edits the Deployment, so that there
// is a pass whatever the manager does not want to hear of. The API server takes no writes of Memcacheds from the manager
// meanwhile; those of the Deployment go on, as an error of theirs would have the status tried again, too. It returns how often
// the manager tried in vain.
func spoilWhileRefused(ctx context.Context, m env.Memcached) int {
	GinkgoHelper()
	f := injector(m)
	since := env.RequestCount()
	Expect(f.RefuseWrites(ctx, apiproxy.NoMemcacheds, env.FirstTry, 1, func() error {
		if err := setConditions(ctx, m, otherCondition, "Available"); err != nil {
			return err
		}
		// A label, because an annotation would give the Deployment another generation, which is news for a status, too.
		if err := edit(ctx, m, func(d *appsv1.Deployment) { metav1.SetMetaDataLabel(&d.ObjectMeta, foreignKey, foreignValue) }); err != nil {
			return err
		}
		return m.AwaitStable(ctx) // else the news of the edit would repair what the first try could not
	})).To(Succeed())
	tries := 0
	for _, w := range m.Writes(since) {
		if w.Disturbed {
			tries++
		}
	}
	return tries
}

// injector disturbs the manager in the namespace of a Memcached.
func injector(m env.Memcached) *faults.Injector {
	GinkgoHelper()
	f, err := faults.New(m.Namespace, nil)
	Expect(err).To(Succeed())
	return f
}

// isRepairedLater scales the Deployment while the API server takes no writes of Deployments, and wants the replicas to be put
// back when it does again.
func isRepairedLater(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	Expect(m.AwaitStable(ctx)).To(Succeed()) // a pass that is under way is not to be the one that repairs
	Expect(injector(m).RefuseWrites(ctx, apiproxy.NoDeployments, env.FirstTry, 1, func() error {
		if err := edit(ctx, m, func(d *appsv1.Deployment) { d.Spec.Replicas = new(m.Size + 1) }); err != nil {
			return err
		}
		return m.AwaitStable(ctx) // the deployment controller's news of the edit come after it
	})).To(Succeed())
	Eventually(ctx, env.DeploymentOf(m)).WithTimeout(env.RetryTimeout).
		Should(match.HaveReplicas(m.Size).Because("gave-up").Unexplained().ByKubernetes(env.RetryTimeout))
}

// keepsWhatComesMeanwhile wants a condition to stay that somebody else adds while the manager's write of the status is on its way.
func keepsWhatComesMeanwhile(ctx context.Context, m env.Memcached) {
	GinkgoHelper()
	failed := injector(m).Interfere(m, "status", func(ctx context.Context) error { return setConditions(ctx, m, lateCondition) })
	m.Size = 1 + m.Size%5
	Expect(m.SetSpec(ctx, "size", m.Size)).To(Succeed())
	Eventually(ctx, env.MemcachedOf(m)).Should(match.Make(unavailable))
	Expect(failed()).To(Succeed())
	Expect(m.AwaitStable(ctx)).To(Succeed())
	obj := memcached(ctx, m)
	Expect(hasCondition(obj, otherCondition)).To(Succeed())
	Expect(hasCondition(obj, lateCondition)).To(Succeed())
}

// hasCondition wants a condition of somebody else.
func hasCondition(obj *unstructured.Unstructured, kind string) error {
	c, err := env.Condition(obj, kind)
	if err == nil && c == nil {
		err = finding.New("condition-removed", "the condition "+kind+" of somebody else stays", "it is gone")
	}
	return err
}

// setConditions writes conditions of some types into the status, as somebody else who may do so, over those that are there.
func setConditions(ctx context.Context, m env.Memcached, kinds ...string) error {
	obj, err := m.Get(ctx)
	if err != nil {
		return fmt.Errorf("get Memcached %s: %w", m, err)
	}
	conditions, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
	if err != nil {
		return fmt.Errorf("read status.conditions: %w", err)
	}
	now := metav1.Now().UTC().Format(time.RFC3339)
	written := func(kind string) map[string]any {
		return map[string]any{
			"type": kind, "status": "True", "reason": spoiled, "message": "written by a check",
			"lastTransitionTime": now, "observedGeneration": obj.GetGeneration(),
		}
	}
	var all []any
	for _, kind := range kinds {
		all = append(all, written(kind))
	}
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && slices.Contains(kinds, fmt.Sprint(c["type"])) {
			continue
		}
		all = append(all, c)
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": all}})
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
		if err := hasCondition(obj, otherCondition); err != nil {
			return err
		}
		c, err := env.Condition(obj, "Available")
		switch {
		case err != nil:
			return err
		case c == nil || c.Reason != spoiled:
			return unavailable(obj)
		case refused > 0:
			return finding.New("gave-up", expected+", also when the first write of the status fails",
				"the API server refused that write, and nobody tried again")
		}
		return finding.New("not-repaired", expected, "Available is still True, with the reason %s", spoiled)
	})
}
