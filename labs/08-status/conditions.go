package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
)

// wanted is the status that one condition has in a stable state, and the cause when it has another one.
type wanted struct {
	condition string
	status    metav1.ConditionStatus
	cause     string
}

// stableState is a row of the contract's table.
type stableState struct {
	name       string
	conditions []wanted
}

var (
	done = stableState{"all Pods are available", []wanted{
		{"Available", metav1.ConditionTrue, "not-available"},
		{"Progressing", metav1.ConditionFalse, "still-progressing"},
		{"Degraded", metav1.ConditionFalse, "still-degraded"},
	}}
	underWay = stableState{"Pods are on their way", []wanted{
		{"Progressing", metav1.ConditionTrue, "never-progressing"},
		{"Degraded", metav1.ConditionFalse, "alarmed"},
	}}
	stuck = stableState{"somebody has to help", []wanted{
		{"Degraded", metav1.ConditionTrue, "not-degraded"},
		{"Progressing", metav1.ConditionFalse, "progressing-for-ever"},
		{"Available", metav1.ConditionFalse, "still-available"},
	}}
)

// haveConditions wants the conditions of a stable state, each about today's generation.
func haveConditions(state stableState) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		for _, w := range state.conditions {
			expected := fmt.Sprintf("%s is %s when %s", w.condition, w.status, state.name)
			c, err := env.Condition(obj, w.condition)
			switch {
			case err != nil:
				return err
			case c == nil:
				return finding.New("no-condition", expected, "no condition %s", w.condition)
			case c.ObservedGeneration != obj.GetGeneration():
				return finding.New("stale-observed-generation", fmt.Sprintf("observedGeneration %d in the condition %s", obj.GetGeneration(), w.condition),
					"observedGeneration %d", c.ObservedGeneration)
			case c.Status != w.status:
				return finding.New(w.cause, expected, "it is %s (%s: %s)", c.Status, c.Reason, c.Message)
			}
		}
		return nil
	})
}

// watched calls see with each state of an object of a namespace that has the name, until the check ends or stop is called. An error
// of stop says that the watch had ended before, and some states were not seen.
func watched(ctx context.Context, list client.ObjectList, m env.Memcached, see func(client.Object)) (stop func() error, _ error) {
	w, err := env.Admin().Watch(ctx, list, client.InNamespace(m.Namespace))
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	ended, stopped := make(chan error, 1), make(chan struct{})
	go func() {
		var failed error
		for event := range w.ResultChan() {
			if event.Type == watch.Error {
				failed = fmt.Errorf("watch: %w", apierrors.FromObject(event.Object))
			} else if obj, ok := event.Object.(client.Object); ok && obj.GetName() == m.Name {
				see(obj)
			}
		}
		select {
		case <-stopped:
			ended <- nil
		default:
			ended <- finding.Machine("watch an object until the check ends", cmp.Or(failed, errors.New("the watch has ended")))
		}
	}()
	stop = sync.OnceValue(func() error {
		close(stopped)
		w.Stop()
		return <-ended
	})
	DeferCleanup(func() { _ = stop() })
	return stop, nil
}

// watchForAlarm looks at each state of a Memcached until the returned function is called, which says whether Degraded was
// True in one of them.
func watchForAlarm(ctx context.Context, m env.Memcached) (wasAlarmed func() error, _ error) {
	var wrong error
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("cache.example.com/v1alpha1")
	list.SetKind("MemcachedList")
	stop, err := watched(ctx, list, m, func(obj client.Object) {
		if u, ok := obj.(*unstructured.Unstructured); ok && wrong == nil {
			wrong = isAlarmed(u)
		}
	})
	return func() error {
		missed := stop()
		return cmp.Or(wrong, missed)
	}, err
}

func isAlarmed(obj *unstructured.Unstructured) error {
	c, err := env.Condition(obj, "Degraded")
	if err == nil && c != nil && c.Status == metav1.ConditionTrue {
		err = finding.New("alarmed", "Degraded is not True while Pods come", "it was True (%s: %s)", c.Reason, c.Message)
	}
	return err
}

// watchDeployment counts how often the status of a Memcached's Deployment changes, until the returned function is called.
func watchDeployment(ctx context.Context, m env.Memcached) (changes func() int, _ error) {
	last, n := appsv1.DeploymentStatus{}, -1 // the first state is none
	stop, err := watched(ctx, &appsv1.DeploymentList{}, m, func(obj client.Object) {
		d, ok := obj.(*appsv1.Deployment)
		if !ok {
			return
		}
		d.Status.ObservedGeneration = 0 // which any change of the spec moves
		if n < 0 || !equality.Semantic.DeepEqual(d.Status, last) {
			last, n = d.Status, n+1
		}
	})
	return func() int {
		_ = stop() // fewer changes make the check a stricter one
		return n
	}, err
}

// spareWrites is how many more writes than pieces of news there may be.
const spareWrites = 2

// onceForEach wants no more writes of the status than there was news.
func onceForEach(m env.Memcached, since, news int) error {
	made := 0
	for _, w := range m.Writes(since) {
		if w.Subresource == "status" && w.Written() {
			made++
		}
	}
	if made > news+spareWrites {
		return finding.New("several-writes", fmt.Sprintf("one write of the status for each of %d pieces of news, and %d to spare", news, spareWrites), "%d writes", made)
	}
	return nil
}
