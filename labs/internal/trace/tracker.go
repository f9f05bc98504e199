package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/operator-lab/labs/internal/plain"
)

// Tracker tells actions from what watches deliver.
type Tracker struct {
	// Objects are those that exist, as they were seen last.
	Objects map[types.UID]*unstructured.Unstructured

	actor   func(fieldManager string) string
	deleted map[types.UID]bool
	kubelet string // who runs Pods: kwok plays the kubelet where a cluster has no nodes
}

// NewTracker knows no objects yet. actor names the actor behind a field manager, which is the name of the program that wrote unless
// that gives another one. kubectl is always [You].
func NewTracker(actor func(fieldManager string) string) *Tracker {
	return &Tracker{Objects: map[types.UID]*unstructured.Unstructured{}, actor: actor, deleted: map[types.UID]bool{}, kubelet: "kubelet"}
}

// Observe returns what was done to an object. There is at least one action, which has no verb if nothing is worth a line.
// Observations have to be in their order; see [Stream].
func (t *Tracker) Observe(o Observation) []Action {
	uid := o.Object.GetUID()
	c := &change{Tracker: t, before: t.Objects[uid], now: o.Object}
	namespace, name := o.Object.GetNamespace(), o.Object.GetName()
	switch {
	case o.Object.GetKind() == "Event":
		namespace, name = c.event()
	case o.Deleted:
		c.gone()
	default:
		c.changed()
	}
	if t.Objects[uid] = o.Object; o.Deleted {
		delete(t.Objects, uid)
		t.deleted[uid] = true
	}
	if len(c.actions) == 0 {
		c.actions = []Action{{}}
	}
	for i := range c.actions {
		a := &c.actions[i]
		a.At, a.Namespace, a.Object, a.Version = o.At, namespace, name, o.Object.GetResourceVersion()
	}
	return c.actions
}

// change collects what two versions of an object tell. before is nil for a new object.
type change struct {
	*Tracker
	before, now *unstructured.Unstructured
	actions     []Action
}

func (c *change) add(actor, verb, detail string) {
	c.actions = append(c.actions, Action{Actor: actor, Verb: verb, Kind: c.now.GetKind(), Name: c.now.GetName(), Detail: detail})
}

func (c *change) changed() {
	if c.before == nil {
		detail := ""
		if size := value(c.now, "spec", "size"); size != nil {
			detail = fmt.Sprintf(" of size %v", size)
		}
		c.add(c.writer("spec"), "created", detail)
		c.before = c.now.DeepCopy() // of which the following is news, even if it came with the creation
		unstructured.RemoveNestedField(c.before.Object, "status")
		unstructured.RemoveNestedField(c.before.Object, "spec", "nodeName")
	}
	var reported, message, changed, changer string
	for _, path := range diff(c.before, c.now) {
		is, last := value(c.now, path...), path[len(path)-1]
		switch c.now.GetKind() + " " + path[0] + " " + path[min(1, len(path)-1)] {
		case "Deployment spec replicas", "ReplicaSet spec replicas":
			c.add(c.writer(path...), "scaled", fmt.Sprintf(" from %v to %v", value(c.before, path...), is))
		case "Pod spec nodeName":
			c.add("kube-scheduler", "found a node for", "") // a binding is no update, and leaves no name
		case "Pod status conditions":
			if slices.Contains(path, "type=Ready") && last == "status" && is == "True" {
				c.kubelet = c.writer(path...) // or kwok
				c.add(c.kubelet, "started", "")
			}
		case "Pod status containerStatuses":
			if last == "reason" && slices.Contains(path, "waiting") && is != nil && is != "ContainerCreating" && is != "PodInitializing" {
				c.add(c.kubelet, "could not start", fmt.Sprintf(": %v", is))
			}
		case "Deployment status availableReplicas":
			if is == value(c.now, "spec", "replicas") {
				c.actions = append(c.actions, Action{Actor: c.writer(path...), Verb: "counted", Kind: fmt.Sprintf("%v of %v replicas available", is, is)})
			}
		case "Memcached status conditions":
			if last == "status" && is != nil {
				reported += fmt.Sprintf(", %s=%v", strings.TrimPrefix(path[2], "type="), is)
				message = cmp.Or(message, fmt.Sprint(value(c.now, path[0], path[1], path[2], "message")))
			}
		default:
			c.common(path)
			if path[0] == "spec" && c.now.GetKind() != "Pod" {
				changed, changer = changed+fmt.Sprintf(", %s %v", last, is), cmp.Or(changer, c.writer(path...))
			}
		}
	}
	if changed != "" {
		c.add(changer, "changed", ": "+plain.Short(changed[len(", "):], quoted))
	}
	if reported != "" {
		c.actions = append(c.actions, Action{
			Actor: c.writer("status"), Verb: "reported", Kind: reported[len(", "):], Detail: " (" + plain.Short(message, quoted) + ")",
		})
	}
}

// quoted is how many characters of somebody's words an action quotes.
const quoted = 110

// common tells what is the same for all kinds.
func (c *change) common(path []string) {
	switch key := path[len(path)-1]; path[min(1, len(path)-1)] {
	case "labels", "annotations":
		if !strings.Contains(key, "kubernetes.io/") { // those are for the controllers of Kubernetes
			c.add(c.writer(path...), "changed", ": the "+strings.TrimSuffix(path[1], "s")+" "+key)
		}
	case "ownerReferences":
		if owner := metav1.GetControllerOf(c.now); owner != nil && key == "controller" {
			c.add(c.writer(path...), "set the owner of", ": "+owner.Kind+" "+owner.Name)
		}
	case "finalizers":
		if added := sets.New(c.now.GetFinalizers()...).Delete(c.before.GetFinalizers()...); len(added) > 0 {
			c.add(c.writer(path...), "added a finalizer to", ": "+strings.Join(sets.List(added), ", "))
		}
	case "deletionTimestamp":
		if c.before.GetDeletionTimestamp() != nil {
			return // a grace period became shorter
		}
		actor, detail := c.deleter()
		if f := c.now.GetFinalizers(); len(f) > 0 {
			detail = ": it waits for " + strings.Join(f, ", ")
		}
		c.add(actor, "deleted", detail)
	}
}

// event tells events on a Memcached. The other events of Kubernetes say in words what its objects show. It returns the object that the
// event is about.
func (c *change) event() (namespace, name string) {
	var e eventsv1.Event
	_ = runtime.DefaultUnstructuredConverter.FromUnstructured(c.now.Object, &e)
	if e.Regarding.Kind != "Memcached" {
		return "", ""
	}
	verb := "wrote"
	if Times(&e) > 1 {
		verb = "repeated"
	}
	c.actions = append(c.actions, Action{Actor: c.writer("note"), Verb: verb, Kind: "event", Detail: fmt.Sprintf(" %q", e.Note)})
	return e.Regarding.Namespace, e.Regarding.Name
}

// Times is how often an event was recorded, whichever recorder counted.
func Times(e *eventsv1.Event) int {
	n := max(1, int(e.DeprecatedCount))
	if e.Series != nil {
		n = max(n, int(e.Series.Count))
	}
	return n
}

// gone tells who removed an object. If it had a finalizer or a grace period, its deletion was told before.
func (c *change) gone() {
	switch asked := c.before != nil && c.before.GetDeletionTimestamp() != nil; {
	case asked && c.now.GetKind() == "Pod":
		c.add(c.kubelet, "ended", "")
	case asked:
		c.add("kube-apiserver", "removed", ": it has no finalizer left")
	default:
		actor, detail := c.deleter()
		c.add(actor, "deleted", detail)
	}
}

// deleter is who deleted an object. The API server keeps no record of that, but few can have done it: the garbage collector when
// the owner is gone, the ReplicaSet's controller when there are more Pods than it wants, and otherwise you.
func (c *change) deleter() (actor, detail string) {
	owner := metav1.GetControllerOf(c.now)
	if owner == nil {
		return You, ""
	}
	if c.deleted[owner.UID] {
		return "garbage-collector", fmt.Sprintf(": the %s is gone", owner.Kind)
	}
	pods := int64(1)
	for uid, o := range c.Objects {
		other := metav1.GetControllerOf(o)
		if other != nil && other.UID == owner.UID && uid != c.now.GetUID() && o.GetDeletionTimestamp() == nil {
			pods++
		}
	}
	if wanted, ok := value(c.Objects[owner.UID], "spec", "replicas").(int64); c.now.GetKind() == "Pod" && ok && pods > wanted {
		return "replicaset-controller", ""
	}
	return You, ""
}

// writer is who wrote a field last, or the nearest field above it that has a writer. The controllers of Kubernetes share one
// program and one name: the one that writes a status is the controller of its kind, any other that of the owner.
func (c *change) writer(path ...string) string {
	owner := cmp.Or(metav1.GetControllerOf(c.now), &metav1.OwnerReference{Kind: c.now.GetKind()})
	for ; len(path) > 0; path = path[:len(path)-1] {
		for _, entry := range c.now.GetManagedFields() {
			switch {
			case entry.FieldsV1 == nil || !has(entry.FieldsV1.GetRawBytes(), path):
			case strings.HasPrefix(entry.Manager, "kubectl"):
				return You
			case entry.Manager != "kube-controller-manager":
				return c.actor(entry.Manager)
			case c.now.GetKind() == "Memcached":
				return "autoscaler-controller"
			case path[0] == "status":
				return strings.ToLower(c.now.GetKind()) + "-controller"
			default:
				return strings.ToLower(owner.Kind) + "-controller"
			}
		}
	}
	return "somebody"
}

// has says whether an entry of managedFields has a field.
func has(fieldsV1 []byte, path []string) bool {
	var fields map[string]any
	_ = json.Unmarshal(fieldsV1, &fields)
	for _, name := range path {
		key := "f:" + name
		if k, v, ok := strings.Cut(name, "="); ok && (k == "name" || k == "type") {
			key = fmt.Sprintf("k:{%q:%q}", k, v)
		}
		if fields, _ = fields[key].(map[string]any); fields == nil {
			return false
		}
	}
	return true
}

// value is a field's, nil where it is missing.
func value(o *unstructured.Unstructured, path ...string) any {
	if o == nil {
		return nil
	}
	var v any = o.Object
	for _, name := range path {
		v = children(v)[name]
	}
	return v
}

// children are the fields of a map, and the items of a list that have a type or a name.
func children(v any) map[string]any {
	items, isList := v.([]any)
	if !isList {
		m, _ := v.(map[string]any)
		return m
	}
	m := map[string]any{}
	for _, item := range items {
		for _, key := range []string{"type", "name"} {
			if name, ok := children(item)[key].(string); ok {
				m[key+"="+name] = item
			}
		}
	}
	return m
}

// diff returns the paths where two objects differ, sorted, below a path.
func diff(before, now *unstructured.Unstructured, path ...string) (paths [][]string) {
	was, is := children(value(before, path...)), children(value(now, path...))
	names := sets.KeySet(was).Union(sets.KeySet(is))
	if len(names) == 0 && !reflect.DeepEqual(value(before, path...), value(now, path...)) {
		return [][]string{path}
	}
	for _, name := range sets.List(names) {
		paths = append(paths, diff(before, now, slices.Concat(path, []string{name})...)...)
	}
	return paths
}
