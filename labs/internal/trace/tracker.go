package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/example/operator-lab/labs/internal/plain"
)

// Tracker turns what watches deliver into actions.
type Tracker struct {
	// Objects are those that exist, as they were seen last.
	Objects map[types.UID]*unstructured.Unstructured

	actor   func(fieldManager string) string
	deleted map[types.UID]bool
}

// NewTracker knows no objects yet. actor names the actor behind a field manager, which is the name of the program that wrote unless
// the program gives another one. kubectl is always [You].
func NewTracker(actor func(fieldManager string) string) *Tracker {
	return &Tracker{Objects: map[types.UID]*unstructured.Unstructured{}, actor: actor, deleted: map[types.UID]bool{}}
}

// Observe returns what was done to an object, as far as it is worth a line. Observations have to be in their order; see [Stream].
func (t *Tracker) Observe(o Observation) []Action {
	uid := o.Object.GetUID()
	c := &change{Tracker: t, at: o.At, before: t.Objects[uid], now: o.Object}
	switch {
	case o.Object.GetKind() == "Event":
		c.event()
	case o.Deleted:
		c.gone()
	case c.before == nil:
		detail := ""
		if size := leaves(c.now)["spec size"]; size != nil {
			detail = fmt.Sprintf(" of size %v", size)
		}
		c.add(c.writer("spec"), "created", detail)
	default:
		c.changed()
	}
	if t.Objects[uid] = o.Object; o.Deleted {
		delete(t.Objects, uid)
		t.deleted[uid] = true
	}
	return c.actions
}

// change collects what two versions of an object tell. before is nil for a new object.
type change struct {
	*Tracker
	at          time.Time
	before, now *unstructured.Unstructured
	actions     []Action
}

func (c *change) add(actor, verb, detail string) {
	c.actions = append(c.actions, Action{c.at, actor, verb, c.now.GetKind(), c.now.GetName(), detail, c.now.GetNamespace()})
}

// quoted is how many characters of somebody's words an action quotes.
const quoted = 110

// changed adds actions for what differs. Changes of several fields that have one verb become one action.
func (c *change) changed() {
	was, is := leaves(c.before), leaves(c.now)
	fields, writers := map[string][]string{}, map[string]string{} // by verb
	for _, key := range sets.List(sets.KeySet(was).Union(sets.KeySet(is))) {
		if was[key] == is[key] {
			continue
		}
		path, value, verb, text := strings.Split(key, " "), is[key], "changed", ""
		parent, last := path[0]+" "+path[min(1, len(path)-1)], path[len(path)-1]
		switch kind := c.now.GetKind(); {
		case parent == "spec replicas":
			c.add(c.writer(path...), "scaled", fmt.Sprintf(" from %v to %v", was[key], value))
		case kind == "Pod" && parent == "spec nodeName":
			c.add("kube-scheduler", "found a node for", "") // a binding is no update, and leaves no name
		case kind == "Pod" && key == "status conditions type=Ready status" && value == "True":
			c.add(c.writer(path...), "started", "")
		case kind == "Pod" && parent == "status containerStatuses" && strings.HasSuffix(key, "waiting reason") && value != nil && value != "ContainerCreating":
			c.add(c.writer("status", "phase"), "could not start", fmt.Sprintf(": %v", value))
		case kind == "Deployment" && parent == "status availableReplicas" && value == is["spec replicas"]:
			verb, text = "reported", fmt.Sprintf("%v of %v replicas available", value, value)
		case kind == "Memcached" && parent == "status conditions" && last == "status" && value != nil:
			verb, text = "reported", fmt.Sprintf("%s=%v", strings.TrimPrefix(path[2], "type="), value)
		case parent == "metadata deletionTimestamp" && was[key] == nil:
			c.deletion()
		case parent == "metadata finalizers", parent == "metadata ownerReferences":
			text = path[1]
		case (parent == "metadata labels" || parent == "metadata annotations") && !strings.Contains(last, "kubernetes.io/"): // those are for Kubernetes
			text = "the " + strings.TrimSuffix(path[1], "s") + " " + last
		case path[0] == "spec" && kind != "Pod":
			text = fmt.Sprintf("%s %v", last, value)
		}
		if text != "" && !slices.Contains(fields[verb], text) {
			fields[verb], writers[verb] = append(fields[verb], text), cmp.Or(writers[verb], c.writer(path...))
		}
	}
	for _, verb := range slices.Sorted(maps.Keys(fields)) {
		c.add(writers[verb], verb, ": "+plain.Short(strings.Join(fields[verb], ", "), quoted))
	}
}

// event adds an action for an event on a Memcached. Other events only repeat what the objects show.
func (c *change) event() {
	verb, fields := "wrote", leaves(c.now)
	if c.before != nil {
		verb = "repeated"
	}
	if fields["regarding kind"] == "Memcached" {
		note := fmt.Sprintf(" %q", fields["note"])
		c.actions = append(c.actions, Action{c.at, c.writer("note"), verb, "event", "", note, c.now.GetNamespace()})
	}
}

// gone adds an action for an object that is no longer there. If it had a finalizer or a grace period, its deletion has an action already.
func (c *change) gone() {
	switch {
	case c.before == nil || c.before.GetDeletionTimestamp() == nil:
		c.deletion()
	case c.now.GetKind() == "Pod":
		c.add(c.writer("status", "phase"), "ended", "") // the kubelet, or kwok where a cluster has no nodes
	default:
		c.add("kube-apiserver", "removed", ": it has no finalizer left")
	}
}

// deletion adds an action for a deletion. The API server keeps no record of who asked for it, but few can have done so: the garbage
// collector when the owner is gone, the ReplicaSet's controller when there are more Pods than it wants, and otherwise you.
func (c *change) deletion() {
	actor, detail, pods := You, "", int64(0)
	if f := c.now.GetFinalizers(); len(f) > 0 {
		detail = ": it waits for " + strings.Join(f, ", ")
	}
	if owner := metav1.GetControllerOf(c.now); owner != nil {
		for _, o := range c.Objects {
			if other := metav1.GetControllerOf(o); other != nil && other.UID == owner.UID && o.GetDeletionTimestamp() == nil {
				pods++ // this one included
			}
		}
		wanted, ok := leaves(c.Objects[owner.UID])["spec replicas"].(int64)
		switch {
		case c.deleted[owner.UID]:
			actor, detail = "garbage-collector", ": the "+owner.Kind+" is gone"+detail
		case c.now.GetKind() == "Pod" && ok && pods > wanted:
			actor = "replicaset-controller"
		}
	}
	c.add(actor, "deleted", detail)
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

// leaves are the values in an object, by the names of the fields that lead there. An item of a list has its name or type for a name.
func leaves(o *unstructured.Unstructured) map[string]any {
	all := map[string]any{}
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, field := range v {
				walk(path+" "+name, field)
			}
		case []any:
			for i, item := range v {
				name := fmt.Sprint(i)
				fields, _ := item.(map[string]any)
				for _, key := range []string{"type", "name"} {
					if text, ok := fields[key].(string); ok {
						name = key + "=" + text
					}
				}
				walk(path+" "+name, item)
			}
		default:
			all[strings.TrimPrefix(path, " ")] = v
		}
	}
	if o != nil {
		walk("", o.Object)
	}
	return all
}
