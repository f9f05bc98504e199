package status

import (
	"context"
	"errors"
	"fmt"

	. "github.com/onsi/ginkgo/v2"
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
		{"Degraded", metav1.ConditionFalse, "degraded-during-rollout"},
	}}
	stuck = stableState{"somebody has to help", []wanted{
		{"Degraded", metav1.ConditionTrue, "not-degraded"},
		{"Progressing", metav1.ConditionFalse, "progressing-for-ever"},
		{"Available", metav1.ConditionFalse, "still-available"},
	}}
	stuckRollout = stableState{"new Pods are refused, and the old ones serve", stuck.conditions[:2]}
)

// haveConditions wants the conditions of a stable state, each about today's generation.
func haveConditions(state stableState) *match.Matcher {
	return match.Make(func(obj *unstructured.Unstructured) error {
		for _, w := range state.conditions {
			expected := fmt.Sprintf("%s is %s when %s", w.condition, w.status, state.name)
			c := env.Condition(obj, w.condition)
			switch {
			case c == nil:
				return finding.New("no-condition", expected, "no condition %s", w.condition)
			case c.ObservedGeneration != obj.GetGeneration():
				return finding.New("stale-observed-generation",
					fmt.Sprintf("observedGeneration %d in the condition %s", obj.GetGeneration(), w.condition),
					"observedGeneration %d", c.ObservedGeneration)
			case c.Status != w.status:
				return finding.New(w.cause, expected, "it is %s (%s: %s)", c.Status, c.Reason, c.Message)
			}
		}
		return nil
	})
}

// haveTheStatusOf wants a Memcached whose status nobody has written since.
func haveTheStatusOf(before *unstructured.Unstructured) *match.Matcher {
	return match.Make(func(now *unstructured.Unstructured) error {
		if equality.Semantic.DeepEqual(now.Object["status"], before.Object["status"]) {
			return nil
		}
		return finding.New("status-changed", "nothing changes, as nothing was asked for", "the status changed from\n%v\nto\n%v",
			before.Object["status"], now.Object["status"])
	})
}

// watchMemcacheds watches the Memcacheds of a namespace until the check ends. What is not read yet, the watch keeps.
func watchMemcacheds(ctx context.Context, namespace string) (watch.Interface, error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(apiVersion)
	list.SetKind("MemcachedList")
	w, err := env.Admin().Watch(ctx, list, client.InNamespace(namespace))
	if err == nil {
		DeferCleanup(w.Stop)
	}
	return w, err
}

// neverDegraded wants Degraded not to have been True in any state of a Memcached from the beginning of a watch until now.
func neverDegraded(ctx context.Context, m env.Memcached, seen watch.Interface) error {
	now, err := m.Get(ctx)
	if err != nil {
		return err
	}
	for event := range seen.ResultChan() {
		obj, ok := event.Object.(*unstructured.Unstructured)
		if !ok {
			break
		}
		if c := env.Condition(obj, "Degraded"); c != nil && c.Status == metav1.ConditionTrue {
			return finding.New("degraded-during-rollout", "Degraded is not True while Pods come", "it was True (%s: %s)", c.Reason, c.Message)
		}
		if obj.GetResourceVersion() == now.GetResourceVersion() {
			return nil
		}
	}
	return apierrors.NewInternalError(errors.New("the watch has ended")) // no fault of the learner's
}
