package trace

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/plain"
)

func (m *Memory) memcachedChanged(before, now *unstructured.Unstructured) []Action {
	var actions []Action
	d := Action{Kind: "Memcached", Name: now.GetName()}
	size := sizeOf(now)
	switch {
	case before == nil:
		d.Actor, d.Verb = m.writer(now, "Memcached", "f:spec"), "created"
		if size > 0 {
			d.Detail = fmt.Sprintf(" of size %d", size)
		}
		actions = append(actions, d)
	case sizeOf(before) != size:
		d.Actor, d.Verb, d.Detail = m.writer(now, "Autoscaler", "f:spec", "f:size"), "changed", fmt.Sprintf(": size %d", size)
		actions = append(actions, d)
	case now.GetGeneration() != before.GetGeneration() && now.GetDeletionTimestamp() == nil:
		actions = append(actions, m.specChanged(before, now))
	}
	if before != nil {
		actions = append(actions, m.metadataChanged(before, now)...)
	}
	var was metav1.Condition
	if before != nil {
		was = Available(before)
	}
	if is := Available(now); is.Status != was.Status && is.Status != "" {
		d.Actor, d.Verb = m.writer(now, "Memcached", "f:status", "f:conditions"), "reported"
		d.Kind, d.Name, d.Detail = available+string(is.Status), "", " ("+clip(is.Message)+")"
		actions = append(actions, d)
	}
	return actions
}

// available begins the kind of an action about the condition of that type.
const available = "Available="

// specChanged names the first field of the spec that differs, with its new value.
func (m *Memory) specChanged(before, now *unstructured.Unstructured) Action {
	d := Action{Actor: m.writer(now, "Memcached", "f:spec"), Verb: "changed", Kind: "Memcached", Name: now.GetName(), Detail: ": its spec"}
	was, _, _ := unstructured.NestedMap(before.Object, "spec")
	is, _, _ := unstructured.NestedMap(now.Object, "spec")
	for _, field := range slices.Sorted(maps.Keys(is)) {
		if !reflect.DeepEqual(was[field], is[field]) {
			d.Actor = m.writer(now, "Memcached", "f:spec", "f:"+field)
			d.Detail = fmt.Sprintf(": %s %v", field, is[field])
			return d
		}
	}
	return d
}

func sizeOf(m *unstructured.Unstructured) int64 {
	size, _, _ := unstructured.NestedInt64(m.Object, "spec", "size")
	return size
}

// Available is the condition of that type, empty when there is none.
func Available(m *unstructured.Unstructured) metav1.Condition {
	if c := meta.FindStatusCondition(statusOf(m).Conditions, "Available"); c != nil {
		return *c
	}
	return metav1.Condition{}
}

// status is what a trace reads of the status of a Memcached.
type status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// statusOf is empty where the learner's types make something else of it.
func statusOf(m *unstructured.Unstructured) status {
	var typed struct {
		Status status `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m.Object, &typed); err != nil {
		return status{}
	}
	return typed.Status
}

// metadataChanged returns changes of labels, annotations, owners and finalizers, and of a deletion that waits for one of these.
func (m *Memory) metadataChanged(before, now client.Object) []Action {
	var actions []Action
	d := Action{Kind: KindOf(now), Name: now.GetName()}
	if was, is := metav1.GetControllerOf(before), metav1.GetControllerOf(now); is != nil && (was == nil || was.UID != is.UID) {
		d.Actor = m.writer(now, ownerKind(now), "f:metadata", "f:ownerReferences")
		d.Verb, d.Detail = "gave an owner to", fmt.Sprintf(": %s %s", is.Kind, is.Name)
		actions = append(actions, d)
	}
	if key := changedKey(before.GetLabels(), now.GetLabels()); key != "" {
		d.Actor = m.writer(now, KindOf(now), "f:metadata", "f:labels", "f:"+key)
		d.Verb, d.Detail = "changed", ": the label "+key
		actions = append(actions, d)
	}
	if key := changedKey(before.GetAnnotations(), now.GetAnnotations()); key != "" {
		d.Actor = m.writer(now, KindOf(now), "f:metadata", "f:annotations", "f:"+key)
		d.Verb, d.Detail = "changed", ": the annotation "+key
		actions = append(actions, d)
	}
	if added := sets.New(now.GetFinalizers()...).Delete(before.GetFinalizers()...); len(added) > 0 {
		d.Actor = m.writer(now, KindOf(now), "f:metadata", "f:finalizers")
		d.Verb, d.Detail = AddedFinalizer, ": "+strings.Join(sets.List(added), ", ")
		actions = append(actions, d)
	}
	if now.GetDeletionTimestamp() != nil && before.GetDeletionTimestamp() == nil {
		d.Actor, d.Verb, d.Detail = You, "asked for the end of", ""
		if f := now.GetFinalizers(); len(f) > 0 {
			d.Detail = ": it waits for " + strings.Join(f, ", ")
		}
		actions = append(actions, d)
	}
	return actions
}

// AddedFinalizer is the verb of whoever adds a finalizer to an object.
const AddedFinalizer = "added a finalizer to"

// ownedByKubernetes marks annotations that controllers of Kubernetes keep for themselves.
const ownedByKubernetes = "kubernetes.io/"

// changedKey is the first key whose value was set anew, "" when there is none.
func changedKey(before, now map[string]string) string {
	for _, key := range slices.Sorted(maps.Keys(now)) {
		if was, ok := before[key]; (!ok || was != now[key]) && !strings.Contains(key, ownedByKubernetes) {
			return key
		}
	}
	return ""
}

func (m *Memory) deploymentChanged(before, now *appsv1.Deployment) []Action {
	d := Action{Kind: "Deployment", Name: now.Name, Actor: m.writer(now, "Deployment", "f:spec", "f:replicas")}
	if before == nil {
		d.Verb = "created"
		return []Action{d}
	}
	actions := m.metadataChanged(before, now)
	wanted, counted := replicas(now.Spec.Replicas), now.Status.AvailableReplicas
	if was := replicas(before.Spec.Replicas); was != wanted {
		d.Verb, d.Detail = "scaled", fmt.Sprintf(" from %d to %d", was, wanted)
		actions = append(actions, d)
	}
	if now.Generation != before.Generation && !equality.Semantic.DeepEqual(before.Spec.Template, now.Spec.Template) {
		field, detail := templateChange(before, now)
		d.Actor = m.writer(now, "Deployment", append([]string{"f:spec", "f:template"}, field...)...)
		d.Verb, d.Detail = "changed", detail
		actions = append(actions, d)
	}
	if len(actions) == 0 && counted == wanted && before.Status.AvailableReplicas != wanted {
		d.Actor = m.writer(now, "Deployment", "f:status", "f:availableReplicas")
		d.Verb, d.Kind, d.Name = "counted", fmt.Sprintf("%d of %d replicas available", counted, wanted), ""
		actions = append(actions, d)
	}
	return actions
}

// templateChange says what differs in the Pod template, as far as a reader of this course cares, and
// which field below the template that is.
func templateChange(before, now *appsv1.Deployment) (field []string, detail string) {
	was, is := before.Spec.Template.Spec.Containers, now.Spec.Template.Spec.Containers
	if len(was) != 1 || len(is) != 1 {
		return nil, ": its Pod template"
	}
	in := func(name string) []string {
		return []string{"f:spec", "f:containers", fmt.Sprintf(`k:{"name":%q}`, is[0].Name), name}
	}
	command := func(c corev1.Container) string { return strings.Join(append(slices.Clone(c.Command), c.Args...), " ") }
	switch {
	case was[0].Image != is[0].Image:
		return in("f:image"), ": image " + is[0].Image
	case command(was[0]) != command(is[0]) && !slices.Equal(was[0].Args, is[0].Args):
		return in("f:args"), ": " + command(is[0])
	case command(was[0]) != command(is[0]):
		return in("f:command"), ": " + command(is[0])
	case !equality.Semantic.DeepEqual(was[0].Ports, is[0].Ports) && len(is[0].Ports) > 0:
		return in("f:ports"), fmt.Sprintf(": port %d", is[0].Ports[0].ContainerPort)
	default:
		return nil, ": its Pod template"
	}
}

func (m *Memory) replicaSetChanged(before, now *appsv1.ReplicaSet) []Action {
	d := Action{Kind: "ReplicaSet", Name: now.Name, Actor: m.writer(now, ownerKind(now), "f:spec", "f:replicas")}
	wanted := replicas(now.Spec.Replicas)
	switch {
	case before == nil:
		d.Verb = "created"
	case replicas(before.Spec.Replicas) != wanted:
		d.Verb, d.Detail = "scaled", fmt.Sprintf(" from %d to %d", replicas(before.Spec.Replicas), wanted)
	default:
		return nil
	}
	return []Action{d}
}

func (m *Memory) podChanged(before, now *corev1.Pod) []Action {
	var actions []Action
	d := Action{Kind: "Pod", Name: now.Name}
	if before == nil {
		d.Actor, d.Verb = m.writer(now, ownerKind(now), "f:spec", "f:containers"), "created"
		actions = append(actions, d)
	}
	if now.Spec.NodeName != "" && (before == nil || before.Spec.NodeName == "") {
		// A binding is no update, and the only writer that leaves no name.
		d.Actor, d.Verb = "kube-scheduler", "found a node for"
		actions = append(actions, d)
	}
	if ready(now) && (before == nil || !ready(before)) {
		d.Actor, d.Verb = m.writer(now, "Pod", "f:status", "f:conditions", `k:{"type":"Ready"}`), "started"
		actions = append(actions, d)
	}
	if why := hopeless(now); why != "" && (before == nil || hopeless(before) != why) {
		d.Actor, d.Verb, d.Detail = "kubelet", "could not start", ": "+why
		actions = append(actions, d)
		d.Detail = ""
	}
	if now.DeletionTimestamp != nil && (before == nil || before.DeletionTimestamp == nil) {
		actions = append(actions, m.removal(now, "asked to end"))
	}
	return actions
}

// waiting are the reasons for which a container waits in the course of things.
var waiting = sets.New("", "ContainerCreating", "PodInitializing")

// hopeless is why a container of the Pod does not run, "" when it runs or is about to.
func hopeless(p *corev1.Pod) string {
	for _, s := range p.Status.ContainerStatuses {
		if s.State.Waiting != nil && !waiting.Has(s.State.Waiting.Reason) {
			return s.State.Waiting.Reason
		}
	}
	return ""
}

// eventChanged returns events on a Memcached, and of Pods that a ReplicaSet was refused. The other
// events of Kubernetes say in words what its objects show.
func (m *Memory) eventChanged(before, now *eventsv1.Event) []Action {
	about := types.NamespacedName{Namespace: now.Regarding.Namespace, Name: now.Regarding.Name}
	switch {
	case now.Regarding.Kind == "ReplicaSet" && now.Reason == "FailedCreate" && before == nil:
		return []Action{{Actor: "replicaset-controller", Verb: "could not create", Kind: "Pods", Detail: ": " + whyNoPods(now.Note), Of: about}}
	case now.Regarding.Kind != "Memcached":
		return nil
	}
	d := Action{Actor: m.writer(now, "Event", "f:note"), Verb: "wrote", Kind: "event", Detail: fmt.Sprintf(" %q", now.Note), Of: about}
	if now.Type == corev1.EventTypeWarning {
		d.Kind = "warning"
	}
	switch {
	case before == nil:
	case Times(now) > Times(before):
		d.Verb = "repeated"
	default:
		return nil
	}
	return []Action{d}
}

// noPods is what admission says in a namespace whose quota is no Pods at all, as that of a check is
// which judges objects alone.
const noPods = "limited: pods=0"

// whyNoPods is the reason in the event of a ReplicaSet that was refused Pods, without their names.
func whyNoPods(note string) string {
	if strings.HasSuffix(note, noPods) {
		return "the check has a namespace without room for Pods, as it needs none"
	}
	_, why, found := strings.Cut(note, "is forbidden: ")
	if !found {
		why = note
	}
	return clip(why)
}

// Times is how often an event was recorded, whichever recorder counted.
func Times(e *eventsv1.Event) int {
	n := max(1, int(e.DeprecatedCount))
	if e.Series != nil {
		n = max(n, int(e.Series.Count))
	}
	return n
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

// clipped is how much of somebody's words a line of a timeline quotes.
const clipped = 110

func clip(text string) string { return cut(plain.Line(text), clipped) }

// cut is the beginning of a text, of at most n characters.
func cut(text string, n int) string {
	if runes := []rune(text); len(runes) > n {
		return strings.TrimRight(string(runes[:n]), " ") + "…"
	}
	return text
}
