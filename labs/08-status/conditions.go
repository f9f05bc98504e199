package status

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	. "github.com/onsi/ginkgo/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/env"
	"github.com/example/operator-lab/labs/harness/match"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
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

// watchForAlarm looks at each state of a Memcached until the returned function is called, which says whether Degraded was
// True in one of them.
func watchForAlarm(ctx context.Context, m env.Memcached) (wasAlarmed func() error, _ error) {
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion(suite.Group + "/v1alpha1")
	list.SetKind(suite.Kind + "List")
	w, err := env.Admin().Watch(ctx, list, client.InNamespace(m.Namespace))
	if err != nil {
		return nil, fmt.Errorf("watch: %w", err)
	}
	DeferCleanup(w.Stop)
	var stopped atomic.Bool
	ended := make(chan error, 1)
	go func() {
		var alarm error
		for event := range w.ResultChan() {
			obj, ok := event.Object.(*unstructured.Unstructured)
			if !ok || obj.GetName() != m.Name || alarm != nil {
				continue
			}
			if c, err := env.Condition(obj, "Degraded"); err == nil && c != nil && c.Status == metav1.ConditionTrue {
				alarm = finding.New("degraded-during-rollout", "Degraded is not True while Pods come", "it was True (%s: %s)", c.Reason, c.Message)
			}
		}
		if alarm == nil && !stopped.Load() {
			alarm = finding.Machine("watch an object until the check ends", errors.New("the watch has ended"))
		}
		ended <- alarm
	}()
	return func() error {
		stopped.Store(true)
		w.Stop()
		return <-ended
	}, nil
}

const (
	// spareWrites is how many more writes than pieces of news there may be.
	spareWrites = 2
	// idlePasses is how many passes find nothing to do: a random order is the same as before now and then.
	idlePasses = 4
)

// restsWhenAsked makes some passes that find nothing to do, and wants the status of before, down to the order of its lists.
func restsWhenAsked(ctx context.Context, m env.Memcached) error {
	before, err := m.State(ctx)
	for range idlePasses {
		if err == nil {
			err = errors.Join(m.Annotate(ctx), m.WaitIdle(ctx))
		}
	}
	if err != nil {
		return err
	}
	now, err := m.State(ctx)
	if err != nil {
		return err
	}
	return now.Since(before)
}

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
