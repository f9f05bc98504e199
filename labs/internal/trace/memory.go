package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observation is what a watch delivered: an object as it is now, or as it was last.
type Observation struct {
	At      time.Time
	Object  client.Object
	Deleted bool
}

// InOrder sorts by the API server's own counter, which all its objects share. A thing was seen no later
// than what came after it.
func InOrder(observations []Observation) {
	slices.SortStableFunc(observations, func(a, b Observation) int { return cmp.Compare(revision(a.Object), revision(b.Object)) })
	for i := len(observations) - 1; i > 0; i-- {
		if observations[i].At.Before(observations[i-1].At) {
			observations[i-1].At = observations[i].At
		}
	}
}

func revision(o client.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return n
}

// Memory is what a timeline knows of the world so far.
type Memory struct {
	// Objects are all that are there, as they were seen last.
	Objects map[types.UID]client.Object

	resolve ActorResolver
	removed map[types.UID]string // kinds of what is gone
}

// NewMemory remembers nothing yet. resolve names the actors.
func NewMemory(resolve ActorResolver) *Memory {
	return &Memory{Objects: map[types.UID]client.Object{}, resolve: resolve, removed: map[types.UID]string{}}
}

// Learn takes what was seen at almost the same time, and returns what was done.
func (m *Memory) Learn(batch []Observation) []Action {
	InOrder(batch)
	var actions []Action
	for _, s := range batch {
		actions = append(actions, m.Take(s)...)
	}
	return Together(actions)
}

// Take learns from an observation and returns what was done. Observations have to be taken in their order.
func (m *Memory) Take(s Observation) []Action {
	before := m.Objects[s.Object.GetUID()]
	var actions []Action
	if s.Deleted {
		delete(m.Objects, s.Object.GetUID())
		m.removed[s.Object.GetUID()] = KindOf(s.Object)
		actions = m.gone(s.Object, before)
	} else {
		m.Objects[s.Object.GetUID()] = s.Object
		actions = m.changed(before, s.Object)
	}
	for i := range actions {
		actions[i].At, actions[i].Count = s.At, 1
		if actions[i].Of.Name == "" {
			actions[i].Of = client.ObjectKeyFromObject(s.Object)
		}
	}
	return actions
}

// Removed says whether an object of the kind has been seen going.
func (m *Memory) Removed(kind string) bool {
	for _, k := range m.removed {
		if k == kind {
			return true
		}
	}
	return false
}

// changed returns what an object says of its latest change; before is nil when it is new.
func (m *Memory) changed(before, now client.Object) []Action {
	switch now := now.(type) {
	case *unstructured.Unstructured:
		old, _ := before.(*unstructured.Unstructured)
		return m.memcachedChanged(old, now)
	case *appsv1.Deployment:
		old, _ := before.(*appsv1.Deployment)
		return m.deploymentChanged(old, now)
	case *appsv1.ReplicaSet:
		old, _ := before.(*appsv1.ReplicaSet)
		return m.replicaSetChanged(old, now)
	case *corev1.Pod:
		old, _ := before.(*corev1.Pod)
		return m.podChanged(old, now)
	case *eventsv1.Event:
		old, _ := before.(*eventsv1.Event)
		return m.eventChanged(old, now)
	}
	return nil
}

// gone says who removed an object. There are two steps where something has to happen in between:
// somebody asks for its end, and for a Pod the kubelet confirms that its containers have ended; for
// everything else the API server does, when the last finalizer is taken away.
func (m *Memory) gone(o, before client.Object) []Action {
	asked := before != nil && before.GetDeletionTimestamp() != nil
	switch kind := KindOf(o); {
	case kind == "Event":
		return nil
	case asked && kind == "Pod":
		return []Action{{Actor: kubeletOf(o), Verb: "ended", Kind: kind, Name: o.GetName()}}
	case asked:
		return []Action{{Actor: "kube-apiserver", Verb: "removed", Kind: kind, Name: o.GetName(), Detail: ": nothing holds it any more"}}
	}
	return []Action{m.removal(o, "removed")}
}

// kubeletOf is the kubelet of a Pod, or the program that plays it.
func kubeletOf(pod client.Object) string {
	if slices.ContainsFunc(pod.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == playedBy }) {
		return playedBy
	}
	return "kubelet"
}

// removal is an action of whoever deleted an object. The API server keeps no record of that, but there are
// few who can have done it: the garbage collector, when the owner is gone; the controller that made the
// object, when there are more than it wants; and you.
func (m *Memory) removal(o client.Object, verb string) Action {
	d := Action{Actor: You, Verb: verb, Kind: KindOf(o), Name: o.GetName()}
	owner := metav1.GetControllerOf(o)
	switch {
	case owner == nil:
	case m.removed[owner.UID] != "":
		d.Actor, d.Detail = "garbage-collector", fmt.Sprintf(": the %s is gone", owner.Kind)
	case d.Kind == "Pod" && m.tooMany(o, owner):
		d.Actor = controllerOf(owner.Kind)
	}
	return d
}

// tooMany says whether there were more Pods like one that goes than their ReplicaSet asks for, as far as that is known.
func (m *Memory) tooMany(pod client.Object, owner *metav1.OwnerReference) bool {
	set, ok := m.Objects[owner.UID].(*appsv1.ReplicaSet)
	if !ok {
		return true
	}
	pods := int32(1)
	for uid, other := range m.Objects {
		if KindOf(other) != "Pod" || uid == pod.GetUID() || other.GetDeletionTimestamp() != nil {
			continue
		}
		if theirs := metav1.GetControllerOf(other); theirs != nil && theirs.UID == owner.UID {
			pods++
		}
	}
	return pods > replicas(set.Spec.Replicas)
}

// KindOf is the kind of an object that a watch delivered. Typed ones do not say it themselves.
func KindOf(o client.Object) string {
	switch o := o.(type) {
	case *appsv1.Deployment:
		return "Deployment"
	case *appsv1.ReplicaSet:
		return "ReplicaSet"
	case *corev1.Pod:
		return "Pod"
	case *eventsv1.Event:
		return "Event"
	case *unstructured.Unstructured:
		return o.GetKind()
	default:
		return fmt.Sprintf("%T", o)
	}
}
