package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

// State is what an operator may write about one Memcached.
type State struct {
	deployment map[string]any // nil when there is none
	status     any
	memcached  map[string]any // metadata and spec, which are the user's
}

// StateOf reads the Memcached and its Deployment when it is polled: use it with Eventually and Consistently.
func StateOf(m Memcached) func(context.Context) (State, error) {
	return polled(m.Namespace, refreshInterval, m.State)
}

// State reads both objects. Their resourceVersion stays in: the API server changes it on every real
// change, and on no other.
func (m Memcached) State(ctx context.Context) (State, error) {
	var w State
	d, err := m.deployment(ctx)
	if err != nil {
		return w, err
	}
	if d.UID != "" {
		if w.deployment, err = runtime.DefaultUnstructuredConverter.ToUnstructured(d); err != nil {
			return w, fmt.Errorf("read Deployment %s: %w", m, err)
		}
		unstructured.RemoveNestedField(w.deployment, "metadata", "managedFields")
	}
	obj, err := m.Get(ctx)
	if err != nil {
		return w, fmt.Errorf("get Memcached %s: %w", m, err)
	}
	w.status = obj.Object["status"]
	w.memcached = obj.Object
	delete(w.memcached, "status")
	for _, path := range [][]string{{"managedFields"}, {"resourceVersion"}, {"generation"}, {"annotations", noteAnnotation}} {
		unstructured.RemoveNestedField(w.memcached, append([]string{"metadata"}, path...)...)
	}
	if len(obj.GetAnnotations()) == 0 {
		obj.SetAnnotations(nil)
	}
	return w, nil
}

// Since is a finding about the first thing that has changed since an earlier state, or nil.
func (s State) Since(before State) error {
	const expected = "nothing changes, as nothing was asked for"
	if moved := changes(before.deployment, s.deployment); len(moved) > 0 {
		return finding.New("deployment-changed", expected, "the Deployment changed:\n%s", fieldLines(moved)).With(telling(moved)...)
	}
	if moved := changes(before.status, s.status); len(moved) > 0 {
		cause := "status-changed"
		if onlyTimes(moved) {
			cause = "timestamps-move"
		}
		return finding.New(cause, expected, "the status of the Memcached changed:\n%s", fieldLines(moved)).With(telling(moved)...)
	}
	if !equality.Semantic.DeepEqual(before.status, s.status) {
		return finding.New("status-changed", expected, "the status of the Memcached was written anew, with a list in another order")
	}
	if moved := changes(before.memcached, s.memcached); len(moved) > 0 {
		return finding.New("memcached-changed", expected, "the Memcached itself changed:\n%s", fieldLines(moved)).With(moved...)
	}
	return nil
}

func changes(before, after any) []finding.Field {
	return generate.Compare(after, before)
}

func fieldLines(moved []finding.Field) string {
	var all []string
	for _, f := range moved {
		all = append(all, f.String())
	}
	return strings.Join(all, "\n")
}

// telling are the differences that a reader can do something about. resourceVersion and generation move with
// every write; they are shown when nothing else did.
func telling(moved []finding.Field) []finding.Field {
	chosen := slices.DeleteFunc(slices.Clone(moved), func(f finding.Field) bool {
		return f.Path == "metadata.resourceVersion" || strings.HasSuffix(strings.ToLower(f.Path), "generation")
	})
	if len(chosen) == 0 {
		return moved
	}
	return chosen
}

// observed says whether the deployment controller has seen the Deployment as it is. Its news of that start a pass.
func (s State) observed() bool {
	wanted, _, _ := unstructured.NestedInt64(s.deployment, "metadata", "generation")
	seen, _, _ := unstructured.NestedInt64(s.deployment, "status", "observedGeneration")
	return seen >= wanted
}

func onlyTimes(moved []finding.Field) bool {
	return !slices.ContainsFunc(moved, func(f finding.Field) bool { return !strings.Contains(f.Path, "lastTransitionTime") })
}

// WaitIdle waits until the Memcached is at rest for half a second, and for three seconds at most: what goes on changing is
// another check's business. A check that changes something begins with it. Otherwise a pass that is under way for another reason
// could repair the change by luck.
func (m Memcached) WaitIdle(ctx context.Context) error {
	_, err := m.AwaitRest(ctx, 500*time.Millisecond, 3*time.Second)
	return err
}

// maxChanges is how many changes show that a Memcached does not come to rest. One that does changes with each of its Pods, and
// there are at most five. Those within changePeriod count as one.
const maxChanges, changePeriod = 12, 100 * time.Millisecond

// AwaitRest waits until neither the Deployment nor the status has changed for a period since Kubernetes has seen the Deployment,
// and for limit at most. changed is the last change of one that is not at rest then, or has changed too often.
func (m Memcached) AwaitRest(ctx context.Context, period, limit time.Duration) (changed, err error) {
	read := StateOf(m)
	before, err := read(ctx)
	began, since, counted, changes := time.Now(), time.Now(), time.Time{}, 0
	for err == nil && time.Since(since) < period {
		if changes >= maxChanges {
			return changed, nil
		}
		if time.Since(began) >= limit {
			return finding.Of(changed).TooLate(), nil
		}
		if err = Sleep(ctx, GomegaPollInterval); err != nil {
			return nil, err
		}
		var now State
		if now, err = read(ctx); err != nil {
			return nil, err
		}
		if moved := now.Since(before); moved != nil || !now.observed() {
			before, since, changed = now, time.Now(), cmp.Or(moved, changed, errUnobserved)
			if time.Since(counted) >= changePeriod {
				changes, counted = changes+1, time.Now()
			}
		}
	}
	return nil, err
}

var errUnobserved = errors.New("the deployment controller has not seen the Deployment as it is")
