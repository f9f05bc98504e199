package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/trace"
)

// world is the demo's view of the cluster: five watches, and a memory of what they said. What a registry outside heard comes
// beside it.
type world struct {
	*trace.Memory
	observations chan trace.Observation
	broken       chan error // a watch that ended
	heard        chan registry.Request
	last         registry.Request // that was told
	told         []trace.Action   // in the step that is followed
}

// manyRequests is more than an operator sends in a demo.
const manyRequests = 1000

// hear takes what the registry heard, unless nobody tells it any more.
func (w *world) hear(q registry.Request) {
	select {
	case w.heard <- q:
	default:
	}
}

// asked is what the operator did there, nothing if it is the same as before: it looks again every few seconds.
func (w *world) asked(q registry.Request) []trace.Action {
	if q.Method == w.last.Method && q.Status == w.last.Status && q.Entry == w.last.Entry {
		return nil
	}
	w.last = q
	what := fmt.Sprintf(": %s, size %d", q.Entry.Name, q.Entry.Size)
	if q.Method != http.MethodPut {
		what = ""
	}
	return []trace.Action{{
		At: q.Ended, Actor: operatorName, Verb: "sent", Kind: q.Method, Name: "to the registry", Count: 1,
		Detail: fmt.Sprintf("%s (answer %d)", what, q.Status),
	}}
}

// watchWorld begins to watch Kubernetes' own kinds, and more. The watches end with ctx. The namespace has to be empty of these
// kinds: everything that is seen is told.
func watchWorld(ctx context.Context, c client.WithWatch, more ...client.ObjectList) (*world, error) {
	w := &world{
		Memory: trace.NewMemory(trace.Programs), observations: make(chan trace.Observation), broken: make(chan error, 1),
		heard: make(chan registry.Request, manyRequests),
	}
	lists := []client.ObjectList{&appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &eventsv1.EventList{}}
	for _, list := range append(lists, more...) {
		changes, err := c.Watch(ctx, list, client.InNamespace(namespace))
		if err != nil {
			return nil, fmt.Errorf("watch %T: %w", list, err)
		}
		go w.observe(ctx, changes)
	}
	return w, nil
}

func (w *world) observe(ctx context.Context, changes watch.Interface) {
	defer changes.Stop()
	for change := range changes.ResultChan() {
		object, ok := change.Object.(client.Object)
		if !ok {
			break
		}
		select {
		case w.observations <- trace.Observation{At: time.Now(), Object: object, Deleted: change.Type == watch.Deleted}:
		case <-ctx.Done():
			return
		}
	}
	select {
	case w.broken <- errors.New("the connection to the API server has ended"):
	default: // one broken watch is enough
	}
}

// follow tells what happens until nothing is missing from the step. Without an operator, Kubernetes is alone.
func (w *world) follow(ctx context.Context, s step, operator *runningOperator, p printer) error {
	w.told = nil
	var ended <-chan struct{}
	if operator != nil {
		ended = operator.ended
	}
	var lingered <-chan time.Time
	var batch []trace.Observation
	var asked []trace.Action
	var gathered <-chan time.Time
	var begun time.Time
	restless := time.NewTimer(quiet)
	defer restless.Stop()
	for {
		select {
		case seen := <-w.observations:
			if batch = append(batch, seen); gathered == nil {
				gathered = time.After(settle)
			}
			restless.Reset(quiet)
			continue
		case q := <-w.heard:
			if asked = append(asked, w.asked(q)...); gathered == nil {
				gathered = time.After(settle)
			}
			continue
		case <-restless.C:
			p.wait(s.whileWaiting)
			s.whileWaiting = "" // once is enough
			continue
		case <-gathered:
		case err := <-w.broken:
			return err
		case <-lingered:
			return nil
		case <-ended:
			return operator.gone()
		case <-ctx.Done():
			return w.giveUp(ctx, s, operator)
		}
		learned := w.Learn(batch)
		var early []trace.Action
		if len(asked) > 0 && asked[0].Kind == http.MethodPut && !w.promised() {
			early, asked = asked, nil // a watch is late
		}
		actions := together(learned, asked)
		if begun.IsZero() && len(actions) > 0 {
			begun = actions[0].At
		}
		p.actions(begun, actions)
		w.told = append(w.told, actions...)
		if s.missing(w) == "" && lingered == nil {
			lingered = time.After(s.linger)
		}
		batch, asked, gathered = nil, early, nil
	}
}

// promised says whether a Memcached with a finalizer has been seen.
func (w *world) promised() bool {
	for _, object := range w.Objects {
		if _, ok := object.(*unstructured.Unstructured); ok && len(object.GetFinalizers()) > 0 {
			return true
		}
	}
	return false
}

// together puts what watches and the registry have told in order. Watches are later. The registry was asked for nothing before
// there was a finalizer, so that was seen no later than the first request.
func together(actions, asked []trace.Action) []trace.Action {
	for i := range actions {
		if actions[i].Verb == trace.AddedFinalizer && len(asked) > 0 && asked[0].At.Before(actions[i].At) {
			actions[i].At = asked[0].At
		}
	}
	all := append(actions, asked...)
	slices.SortStableFunc(all, func(a, b trace.Action) int { return a.At.Compare(b.At) })
	return all
}

func (w *world) giveUp(ctx context.Context, s step, operator *runningOperator) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	if operator == nil {
		return fmt.Errorf("after %s %s", stepLimit, s.missing(w))
	}
	return fmt.Errorf("after %s %s; the operator's log is %s", stepLimit, s.missing(w), operator.log.Name())
}

// unsettled says what keeps the Memcached from having that many servers and nothing else, "" if it has.
func unsettled(m *trace.Memory, size int) string {
	if missing := incomplete(m, size); missing != "" {
		return missing
	}
	says, heard := metav1.Condition{}, false
	for _, object := range m.Objects {
		if o, ok := object.(*unstructured.Unstructured); ok {
			says = trace.Available(o)
			heard = says.ObservedGeneration == o.GetGeneration()
		}
	}
	if says.Status != metav1.ConditionTrue || !heard {
		return fmt.Sprintf("the Memcached says Available=%q of generation %d", says.Status, says.ObservedGeneration)
	}
	return ""
}

// incomplete says what keeps the Deployment from having that many available Pods, of one ReplicaSet, and no others, "" if it
// has.
func incomplete(m *trace.Memory, size int) string {
	var pods, sets int
	var available, wanted int32
	for _, object := range m.Objects {
		switch o := object.(type) {
		case *appsv1.Deployment:
			available = o.Status.AvailableReplicas
		case *appsv1.ReplicaSet:
			sets++
			wanted += *o.Spec.Replicas
		case *corev1.Pod:
			pods++
		}
	}
	if pods == size && int(available) == size && int(wanted) == size && sets == 1 {
		return ""
	}
	return fmt.Sprintf("there are %d Pods, %d of them available, not %d; %d ReplicaSets want %d", pods, available, size, sets, wanted)
}

// leftovers says what is still there of the Memcached, "" when nothing is.
func leftovers(m *trace.Memory) string {
	left := map[string]int{}
	for _, object := range m.Objects {
		if k := trace.KindOf(object); k != "Event" {
			left[k]++
		}
	}
	if len(left) == 0 {
		return ""
	}
	return fmt.Sprintf("there is still something of it: %v", left)
}
