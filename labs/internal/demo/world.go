package demo

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/trace"
)

// world is the demo's view of the cluster: five watches, and a memory of what they said.
type world struct {
	*trace.Memory
	observations chan trace.Observation
	broken       chan error // a watch that ended
}

// watchWorld begins to watch. The watches end with ctx. The namespace has to be empty of these kinds:
// everything that is seen is told.
func watchWorld(ctx context.Context, c client.WithWatch) (*world, error) {
	memcacheds := &unstructured.UnstructuredList{}
	memcacheds.SetGroupVersionKind(kind)
	w := &world{Memory: trace.NewMemory(trace.Programs), observations: make(chan trace.Observation), broken: make(chan error, 1)}
	lists := []client.ObjectList{
		memcacheds, &appsv1.DeploymentList{}, &appsv1.ReplicaSetList{}, &corev1.PodList{}, &eventsv1.EventList{},
	}
	for _, list := range lists {
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

// follow tells what happens until nothing is missing from the step.
func (w *world) follow(ctx context.Context, s step, operator *runningOperator, p printer) error {
	var batch []trace.Observation
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
		case <-restless.C:
			p.wait(s.whileWaiting)
			s.whileWaiting = "" // once is enough
			continue
		case <-gathered:
		case err := <-w.broken:
			return err
		case <-operator.ended:
			return operator.gone()
		case <-ctx.Done():
			return w.giveUp(ctx, s, operator)
		}
		actions := w.Learn(batch)
		if begun.IsZero() && len(actions) > 0 {
			begun = actions[0].At
		}
		p.actions(begun, actions)
		if s.missing(w.Memory) == "" {
			return nil
		}
		batch, gathered = nil, nil
	}
}

func (w *world) giveUp(ctx context.Context, s step, operator *runningOperator) error {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	return fmt.Errorf("after %s %s; the operator's log is %s", stepLimit, s.missing(w.Memory), operator.log.Name())
}

// unsettled says what keeps the Memcached from having that many servers and nothing else, "" if it has.
func unsettled(m *trace.Memory, size int) string {
	pods, sets, available := 0, 0, int32(0)
	says, heard := metav1.Condition{}, false
	for _, object := range m.Objects {
		switch o := object.(type) {
		case *unstructured.Unstructured:
			says = trace.Available(o)
			heard = says.ObservedGeneration == o.GetGeneration()
		case *appsv1.Deployment:
			available = o.Status.AvailableReplicas
		case *appsv1.ReplicaSet:
			sets++
		case *corev1.Pod:
			pods++
		}
	}
	switch {
	case int(available) != size || pods != size || sets != 1:
		return fmt.Sprintf("there are %d available replicas, %d Pods and %d ReplicaSets, not %d, %d and 1", available, pods, sets, size, size)
	case says.Status != metav1.ConditionTrue || !heard:
		return fmt.Sprintf("the Memcached says Available=%q of generation %d", says.Status, says.ObservedGeneration)
	}
	return ""
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
