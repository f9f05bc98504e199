package trace

import (
	"encoding/json"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ActorResolver says who is behind a name that the API server keeps in managedFields. Without a header that says
// otherwise it is the name of the program that sent the request.
type ActorResolver func(fieldManager string) string

// Programs is a resolver in which every program goes by its own name, and kubectl is you.
func Programs(fieldManager string) string {
	if strings.HasPrefix(fieldManager, "kubectl") {
		return You
	}
	return fieldManager
}

// nobody is the actor of what no name is kept for.
const nobody = "somebody"

// writer is who wrote a field last, as the API server notes it in managedFields for every field. The
// controllers of Kubernetes share one program and one name there; the one that writes is the controller
// of a kind.
func (m *Memory) writer(o client.Object, kind string, path ...string) string {
	for _, entry := range o.GetManagedFields() {
		if !owns(entry, path) {
			continue
		}
		if entry.Manager == "kube-controller-manager" {
			return controllerOf(kind)
		}
		return m.resolve(entry.Manager)
	}
	return nobody
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
	return KindOf(o)
}
