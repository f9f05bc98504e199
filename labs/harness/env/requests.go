package env

import (
	"context"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
)

// requests are what the manager has sent to the API server, from index since on, in order. Without a manager there are none, and none of
// managers in the cluster are known.
func requests(since int) []apiproxy.Request {
	if current.env == nil || running().inside {
		return nil
	}
	return current.env.proxy.Since(since)
}

// ClusterWide returns a finding with the cause "watches-all" if the manager, since its last start, has listed or watched a kind in all
// namespaces.
func ClusterWide() error {
	began := Manager().run.Load().began
	for _, r := range requests(0) {
		if (r.Verb == "list" || r.Verb == "watch") && r.Namespace == "" && r.Time.After(began) { // the one before may have asked until its end
			return finding.New("watches-all", "lists and watches of the namespaces in WATCH_NAMESPACE alone", "a %s of %s in all namespaces", r.Verb, r.Resource)
		}
	}
	return nil
}

// RequestCount is how many requests the manager has sent so far. It is the index of the next one: pass it as since.
func RequestCount() int { return len(requests(0)) }

// Writes are the mutating requests of the manager, from index since on, for the Memcached, its status, its Deployment and other
// objects of that name.
func (m Memcached) Writes(since int) []apiproxy.Request { return writesTo(requests(since), m.Key()) }

// writesTo are the mutating requests for objects of that name, such as a Memcached and its Deployment. A creation has no name: all in
// the namespace count.
func writesTo(requests []apiproxy.Request, of types.NamespacedName) []apiproxy.Request {
	return slices.DeleteFunc(requests, func(r apiproxy.Request) bool {
		return !r.Mutating() || r.Namespace != of.Namespace || r.Name != "" && r.Name != of.Name
	})
}

// Rewritten names an object in the Memcached's namespace that the manager has changed more than once, from index since on, "" if there
// is none. It leaves out objects with the Memcached's name, events and leases.
func (m Memcached) Rewritten(since int) string { return rewritten(requests(since), m.Key()) }

func rewritten(requests []apiproxy.Request, beside types.NamespacedName) string {
	versions := map[string]string{}
	for _, r := range requests {
		counts := r.Object != "" && r.Object != beside.Name && r.Resource != Events && r.Resource != "leases"
		if !counts || !r.Written() || r.Namespace != beside.Namespace {
			continue
		}
		object := r.Resource + " " + r.Object
		if before, known := versions[object]; known && before != r.ResourceVersion {
			return object
		}
		versions[object] = r.ResourceVersion
	}
	return ""
}

// Denied are the requests that the manager had no right to, one of each kind, with a short message. A quota or a namespace that is
// being deleted gives the same status, 403, so Denied asks the API server about the right.
func Denied(ctx context.Context) ([]apiproxy.Request, error) {
	var all []apiproxy.Request
	asked := map[string]bool{}
	for _, r := range requests(0) {
		key := r.Verb + " " + r.Group + "/" + r.Resource + "/" + r.Subresource
		if r.Status != http.StatusForbidden || asked[key] {
			continue
		}
		asked[key] = true
		allowed, err := may(ctx, r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace)
		if err != nil {
			return nil, err
		}
		if r.Message = r.Reason(managerUser()); !allowed {
			all = append(all, r)
		}
	}
	return all, nil
}

// may asks the API server whether the manager has a right.
func may(ctx context.Context, verb, group, resource, subresource, namespace string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   managerUser(),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace,
		},
	}}
	err := current.admin.Create(ctx, review)
	return review.Status.Allowed, err
}
