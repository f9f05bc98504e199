package demo

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// deed is one thing that somebody did.
type deed struct {
	at    time.Time
	actor string
	verb  string
	// kind and name are what it was done to; count is 1, or more after deeds were put together.
	kind, name string
	count      int
	detail     string
}

// String is the deed without actor and time, such as "created 3 Pods".
func (d deed) String() string {
	words := []string{d.verb, d.kind, d.name}
	if d.count > 1 {
		words = []string{d.verb, strconv.Itoa(d.count), d.kind + "s"}
	}
	return strings.TrimRight(strings.Join(words, " "), " ") + d.detail
}

// together puts deeds of the same actor that differ in names alone into one, in the place of the first:
// what follows from any of them still stands behind it.
func together(deeds []deed) []deed {
	var result []deed
	for _, d := range deeds {
		i := slices.IndexFunc(result, func(o deed) bool {
			return o.actor == d.actor && o.verb == d.verb && o.kind == d.kind && o.detail == d.detail && o.name != d.name
		})
		if i < 0 {
			result = append(result, d)
			continue
		}
		result[i].count += d.count
	}
	return result
}

// sight is what a watch delivered: an object as it is now, or as it was last.
type sight struct {
	at      time.Time
	object  client.Object
	deleted bool
}

// inOrder sorts by the API server's own counter, which all its objects share. A thing was seen no later
// than what came after it.
func inOrder(sights []sight) {
	slices.SortStableFunc(sights, func(a, b sight) int { return cmp.Compare(revision(a.object), revision(b.object)) })
	for i := len(sights) - 1; i > 0; i-- {
		if sights[i].at.Before(sights[i-1].at) {
			sights[i-1].at = sights[i].at
		}
	}
}

func revision(o client.Object) uint64 {
	n, _ := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	return n
}

// memory is what the story knows of the world so far.
type memory struct {
	objects map[types.UID]client.Object
	removed map[types.UID]string // kinds of what is gone
}

func newMemory() *memory {
	return &memory{objects: map[types.UID]client.Object{}, removed: map[types.UID]string{}}
}

// take learns from a sight and tells what was done.
func (m *memory) take(s sight) []deed {
	before := m.objects[s.object.GetUID()]
	var deeds []deed
	if s.deleted {
		delete(m.objects, s.object.GetUID())
		m.removed[s.object.GetUID()] = kindOf(s.object)
		deeds = m.gone(s.object, before)
	} else {
		m.objects[s.object.GetUID()] = s.object
		deeds = m.changed(before, s.object)
	}
	for i := range deeds {
		deeds[i].at, deeds[i].count = s.at, 1
	}
	return deeds
}

// changed tells what an object says of its latest change; before is nil when it is new.
func (m *memory) changed(before, now client.Object) []deed {
	switch now := now.(type) {
	case *unstructured.Unstructured:
		old, _ := before.(*unstructured.Unstructured)
		return memcachedChanged(old, now)
	case *appsv1.Deployment:
		old, _ := before.(*appsv1.Deployment)
		return deploymentChanged(old, now)
	case *appsv1.ReplicaSet:
		old, _ := before.(*appsv1.ReplicaSet)
		return replicaSetChanged(old, now)
	case *corev1.Pod:
		old, _ := before.(*corev1.Pod)
		return m.podChanged(old, now)
	case *eventsv1.Event:
		if before == nil {
			return eventWritten(now)
		}
	}
	return nil
}

// gone tells who removed an object. A Pod that runs is removed in two steps: somebody asks for it, and
// the kubelet confirms that its containers have ended.
func (m *memory) gone(o, before client.Object) []deed {
	switch kindOf(o) {
	case "Event":
		return nil
	case "Pod":
		if before != nil && before.GetDeletionTimestamp() != nil {
			return []deed{{actor: "kubelet", verb: "ended", kind: "Pod", name: o.GetName()}}
		}
	}
	return []deed{m.removal(o, "removed")}
}

// removal is a deed of whoever deleted an object. The API server keeps no record of that, but there are
// few who can have done it: the garbage collector, when the owner is gone; the controller that made the
// object, when it wants fewer; and you.
func (m *memory) removal(o client.Object, verb string) deed {
	d := deed{actor: you, verb: verb, kind: kindOf(o), name: o.GetName()}
	owner := metav1.GetControllerOf(o)
	switch {
	case owner == nil:
	case m.removed[owner.UID] != "":
		d.actor, d.detail = "garbage-collector", fmt.Sprintf(": the %s is gone", owner.Kind)
	case d.kind == "Pod":
		d.actor = controllerOf(owner.Kind)
	}
	return d
}

func memcachedChanged(before, now *unstructured.Unstructured) []deed {
	var deeds []deed
	d := deed{kind: "Memcached", name: now.GetName()}
	size := sizeOf(now)
	switch {
	case before == nil:
		d.actor, d.verb, d.detail = writer(now, "Memcached", "f:spec", "f:size"), "created", fmt.Sprintf(" of size %d", size)
		deeds = append(deeds, d)
	case sizeOf(before) != size:
		d.actor, d.verb, d.detail = writer(now, "Memcached", "f:spec", "f:size"), "changed", fmt.Sprintf(": size %d", size)
		deeds = append(deeds, d)
	}
	var was metav1.Condition
	if before != nil {
		was = conditionOf(before)
	}
	if is := conditionOf(now); is.Status != was.Status {
		d.actor, d.verb = writer(now, "Memcached", "f:status", "f:conditions"), "reported"
		d.kind, d.name, d.detail = "Available="+string(is.Status), "", " ("+is.Message+")"
		deeds = append(deeds, d)
	}
	return deeds
}

func deploymentChanged(before, now *appsv1.Deployment) []deed {
	d := deed{kind: "Deployment", name: now.Name, actor: writer(now, "Deployment", "f:spec", "f:replicas")}
	wanted, counted := replicas(now.Spec.Replicas), now.Status.AvailableReplicas
	switch {
	case before == nil:
		d.verb = "created"
	case replicas(before.Spec.Replicas) != wanted:
		d.verb, d.detail = "scaled", fmt.Sprintf(" from %d to %d", replicas(before.Spec.Replicas), wanted)
	case counted == wanted && before.Status.AvailableReplicas != wanted:
		d.actor = writer(now, "Deployment", "f:status", "f:availableReplicas")
		d.verb, d.kind, d.name = "counted", fmt.Sprintf("%d of %d replicas available", counted, wanted), ""
	default:
		return nil
	}
	return []deed{d}
}

func replicaSetChanged(before, now *appsv1.ReplicaSet) []deed {
	d := deed{kind: "ReplicaSet", name: now.Name, actor: writer(now, ownerKind(now), "f:spec", "f:replicas")}
	wanted := replicas(now.Spec.Replicas)
	switch {
	case before == nil:
		d.verb = "created"
	case replicas(before.Spec.Replicas) != wanted:
		d.verb, d.detail = "scaled", fmt.Sprintf(" from %d to %d", replicas(before.Spec.Replicas), wanted)
	default:
		return nil
	}
	return []deed{d}
}

func (m *memory) podChanged(before, now *corev1.Pod) []deed {
	var deeds []deed
	d := deed{kind: "Pod", name: now.Name}
	if before == nil {
		d.actor, d.verb = writer(now, ownerKind(now), "f:spec", "f:containers"), "created"
		deeds = append(deeds, d)
	}
	if now.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "") {
		// A binding is no update, and the only writer that leaves no name.
		d.actor, d.verb = "kube-scheduler", "found a node for"
		deeds = append(deeds, d)
	}
	if ready(now) && (before == nil || !ready(before)) {
		d.actor, d.verb = writer(now, "Pod", "f:status", "f:conditions", `k:{"type":"Ready"}`), "started"
		deeds = append(deeds, d)
	}
	if now.DeletionTimestamp != nil && (before == nil || before.DeletionTimestamp == nil) {
		deeds = append(deeds, m.removal(now, "asked to end"))
	}
	return deeds
}

func eventWritten(e *eventsv1.Event) []deed {
	if e.Regarding.Kind != "Memcached" {
		return nil
	}
	return []deed{{
		actor: writer(e, "Event", "f:note"), verb: "wrote", kind: "event", detail: fmt.Sprintf(" %q", e.Note),
	}}
}

// you is the actor of what the kubectl command of a step does.
const you = "you"

// writer is who wrote a field last, as the API server notes it in managedFields for every field. The
// controllers of Kubernetes share one program and one name there; the one that writes is the controller
// of a kind.
func writer(o client.Object, kind string, path ...string) string {
	for _, entry := range o.GetManagedFields() {
		if !owns(entry, path) {
			continue
		}
		switch {
		case strings.HasPrefix(entry.Manager, "kubectl"):
			return you
		case entry.Manager == "kube-controller-manager":
			return controllerOf(kind)
		default:
			return entry.Manager
		}
	}
	return "somebody"
}

// owns says whether an entry of managedFields has the field, of which path is the way there.
func owns(entry metav1.ManagedFieldsEntry, path []string) bool {
	if entry.FieldsV1 == nil {
		return false
	}
	var fields any
	if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
		return false
	}
	for _, name := range path {
		level, _ := fields.(map[string]any)
		if fields = level[name]; fields == nil {
			return false
		}
	}
	return true
}

func controllerOf(kind string) string { return strings.ToLower(kind) + "-controller" }

func ownerKind(o client.Object) string {
	if owner := metav1.GetControllerOf(o); owner != nil {
		return owner.Kind
	}
	return kindOf(o)
}

func kindOf(o client.Object) string {
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

func replicas(n *int32) int32 {
	if n == nil {
		return 1 // the API server's default
	}
	return *n
}

func ready(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}
