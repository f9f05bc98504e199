package trace

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observation is what a watch delivered: an object as it is now, or as it was last.
type Observation struct {
	At      time.Time
	Object  *unstructured.Unstructured
	Deleted bool
}

// batchPeriod is the time between two batches of a [Stream]. Within it, the watches of several kinds deliver in any order.
const batchPeriod = 150 * time.Millisecond

// Stream watches Deployments, ReplicaSets, Pods, Events and the kinds of more, in a namespace or, with "", in all. Every 150 ms it
// delivers what was seen, in the order in which the API server wrote it. A watch that fails is begun anew. The channel is closed when
// ctx ends; it keeps 1000 batches that nobody has read.
func Stream(ctx context.Context, c client.WithWatch, namespace string, more ...schema.GroupVersionKind) <-chan []Observation {
	seen, batches := make(chan Observation), make(chan []Observation, 1000)
	for _, kind := range append(more, appsv1.SchemeGroupVersion.WithKind("Deployment"), appsv1.SchemeGroupVersion.WithKind("ReplicaSet"),
		corev1.SchemeGroupVersion.WithKind("Pod"), eventsv1.SchemeGroupVersion.WithKind("Event")) {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		go wait.UntilWithContext(ctx, func(ctx context.Context) {
			changes, err := c.Watch(ctx, list, client.InNamespace(namespace))
			if err != nil {
				return
			}
			defer context.AfterFunc(ctx, changes.Stop)()
			for change := range changes.ResultChan() {
				if object, ok := change.Object.(*unstructured.Unstructured); ok && change.Type != watch.Error {
					select {
					case seen <- Observation{time.Now(), object, change.Type == watch.Deleted}:
					case <-ctx.Done():
						return
					}
				}
			}
		}, batchPeriod)
	}
	go func() {
		defer close(batches)
		var batch []Observation
		for tick := time.Tick(batchPeriod); ; {
			select {
			case o := <-seen:
				batch = append(batch, o)
			case <-tick:
				if len(batch) > 0 {
					batches <- inOrder(batch)
				}
				batch = nil
			case <-ctx.Done():
				return
			}
		}
	}()
	return batches
}

// inOrder sorts by resourceVersion, a counter that all objects share. It also makes the times rise in that order.
func inOrder(batch []Observation) []Observation {
	slices.SortStableFunc(batch, func(a, b Observation) int {
		order, _ := resourceversion.CompareResourceVersion(a.Object.GetResourceVersion(), b.Object.GetResourceVersion())
		return order
	})
	for i := len(batch) - 1; i > 0; i-- {
		if batch[i].At.Before(batch[i-1].At) {
			batch[i-1].At = batch[i].At
		}
	}
	return batch
}
