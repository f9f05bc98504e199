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
	deployment map[string]any // without a UID if there is no Deployment
	status     any
	memcached  map[string]any // metadata and spec, which are the user's
}

// StateOf reads the Memcached and its Deployment when it is polled: use it with Eventually and Consistently.
func StateOf(m Memcached) func(context.Context) (State, error) { return Polled(m.State) }

// State reads both objects. The Deployment keeps its resourceVersion, which the API server changes with every real change and
// at no other time. The Memcached loses what a change of its status or of [Memcached.Annotate] changes.
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
		var lines []string
		for _, f := range moved {
			lines = append(lines, f.String())
		}
		differences := cmp.Or(strings.Join(lines, "\n"), "a list is in another order")
		return finding.New(part.cause, "nothing changes, as nothing was asked for", "%s changed:\n%s", part.what, differences).With(moved...)
	}
	return nil
}

// telling are the differences that a reader can act on. resourceVersion and generation change with every write; they are shown
// only if nothing else changed.
func telling(moved []finding.Field) []finding.Field {
	chosen := slices.DeleteFunc(slices.Clone(moved), func(f finding.Field) bool {
		return f.Path == "metadata.resourceVersion" || strings.HasSuffix(strings.ToLower(f.Path), "generation")
	})
	if len(chosen) == 0 {
		return moved
	}
	return chosen
}

// observed says whether the deployment controller has seen the current Deployment. It then writes the status, which starts a pass.
func (s State) observed() bool {
	wanted, _, _ := unstructured.NestedInt64(s.deployment, "metadata", "generation")
	seen, _, _ := unstructured.NestedInt64(s.deployment, "status", "observedGeneration")
	return seen >= wanted
}

// WaitIdle waits until nothing about the Memcached has changed for half a second, and for three seconds at most. It is no error if
// the changes go on: another check judges that. Call it before a change whose repair is judged. Otherwise a pass that runs for
// another reason could repair the change by chance.
func (m Memcached) WaitIdle(ctx context.Context) error {
	_, err := m.AwaitRest(ctx, 500*time.Millisecond, 3*time.Second)
	return err
}

// maxChanges is after how many changes a Memcached is taken never to come to rest. A right one changes a few times with each of
// its Pods, of which there are at most five.
const maxChanges = 30

// AwaitRest waits until nothing in [State] has changed for a period and the deployment controller has seen the Deployment. It gives
// up after limit or [maxChanges] changes; changed is then the last change.
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
