package env

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/finding"
)

// State is what an operator may write about one Memcached.
type State struct {
	deployment map[string]any // without a UID when there is none
	status     any
	memcached  map[string]any // metadata and spec, which are the user's
}

// StateOf reads the Memcached and its Deployment when it is polled: use it with Eventually and Consistently.
func StateOf(m Memcached) func(context.Context) (State, error) { return Polled(m.State) }

// State reads both objects. Their resourceVersion stays in: the API server changes it on every real
// change, and on no other.
func (m Memcached) State(ctx context.Context) (State, error) {
	d := &unstructured.Unstructured{}
	d.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	if err := client.IgnoreNotFound(current.admin.Get(ctx, m.Key(), d)); err != nil {
		return State{}, err
	}
	unstructured.RemoveNestedField(d.Object, "metadata", "managedFields")
	obj, err := m.Get(ctx)
	if err != nil {
		return State{}, err
	}
	status := obj.Object["status"]
	delete(obj.Object, "status")
	for _, path := range [][]string{{"managedFields"}, {"resourceVersion"}, {"generation"}, {"annotations", noteAnnotation}} {
		unstructured.RemoveNestedField(obj.Object, append([]string{"metadata"}, path...)...)
	}
	if len(obj.GetAnnotations()) == 0 {
		obj.SetAnnotations(nil)
	}
	return State{d.Object, status, obj.Object}, nil
}

// Since is a finding about the first thing that has changed since an earlier state, or nil.
func (s State) Since(before State) error {
	for _, part := range []struct {
		cause, what string
		before, now any
	}{
		{"deployment-changed", "the Deployment", before.deployment, s.deployment},
		{"status-changed", "the status of the Memcached", before.status, s.status},
		{"memcached-changed", "the Memcached itself", before.memcached, s.memcached},
	} {
		moved := telling(generate.Compare(part.now, part.before))
		if len(moved) == 0 && equality.Semantic.DeepEqual(part.before, part.now) {
			continue
		}
		notATime := func(f finding.Field) bool { return !strings.Contains(f.Path, "lastTransitionTime") }
		if part.cause == "status-changed" && len(moved) > 0 && !slices.ContainsFunc(moved, notATime) {
			part.cause = "timestamps-move"
		}
		lines := []string{"a list is in another order"}
		for i, f := range moved {
			lines = append(lines[:i], f.String())
		}
		return finding.New(part.cause, "nothing changes, as nothing was asked for", "%s changed:\n%s", part.what, strings.Join(lines, "\n")).With(moved...)
	}
	return nil
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

// WaitIdle waits until the Memcached is at rest for half a second, and for three seconds at most: what goes on changing is
// another check's business. A check that changes something begins with it. Otherwise a pass that is under way for another reason
// could repair the change by luck.
func (m Memcached) WaitIdle(ctx context.Context) error {
	_, err := m.AwaitRest(ctx, 500*time.Millisecond, 3*time.Second)
	return err
}

// maxChanges is after how many changes a Memcached is taken not to come to rest. One that does changes with each of its Pods, and
// there are at most five.
const maxChanges = 30

// AwaitRest waits until neither the Deployment nor the status has changed for a period since Kubernetes has seen the Deployment,
// and for limit at most. changed is the last change of one that is not at rest then, or has changed too often.
func (m Memcached) AwaitRest(ctx context.Context, period, limit time.Duration) (changed, err error) {
	read := StateOf(m)
	before, err := read(ctx)
	for began, since, changes := time.Now(), time.Now(), 0; err == nil && time.Since(since) < period; {
		switch {
		case changes >= maxChanges:
			return changed, nil
		case time.Since(began) >= limit:
			return finding.Of(changed).TooLate(), nil
		}
		now, err := before, Sleep(ctx, GomegaPollInterval)
		if err == nil {
			now, err = read(ctx)
		}
		if err != nil {
			return nil, err
		}
		if moved := now.Since(before); moved != nil || !now.observed() {
			before, since, changed, changes = now, time.Now(), cmp.Or(moved, changed, errUnobserved), changes+1
		}
	}
	return nil, err
}

var errUnobserved = errors.New("the deployment controller has not seen the Deployment as it is")
