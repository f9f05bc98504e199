package env

import (
	"context"
	"net/http"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// requests are what the manager has sent to the API server since index, in order. Without a manager there are none.
func requests(since int) []apiproxy.Request {
	if current.env == nil {
		return nil
	}
	return current.env.proxy.Since(since)
}

// RequestCount is how many requests the manager has sent so far: the index of the next one. Pass it as the index since when
// requests are asked for.
func RequestCount() int { return len(requests(0)) }

// Writes are the mutating requests of the manager since index that concern the Memcached, its status
// or its Deployment.
func (m Memcached) Writes(since int) []apiproxy.Request { return writesTo(requests(since), m.Key()) }

// writesTo are those of the requests that ask for a change of an object of that name, such as a Memcached and its Deployment.
func writesTo(requests []apiproxy.Request, of types.NamespacedName) []apiproxy.Request {
	return slices.DeleteFunc(requests, func(r apiproxy.Request) bool {
		return !r.Mutating() || r.Namespace != of.Namespace || r.Name != "" && r.Name != of.Name
	})
}

// Rewritten names an object in the Memcached's namespace, beside the Memcached and what has its name, that the manager has changed more
// than once since index, as far as answers tell; "" when there is none. Events and leases are left out.
func (m Memcached) Rewritten(since int) string { return rewritten(requests(since), m.Key()) }

func rewritten(requests []apiproxy.Request, beside types.NamespacedName) string {
	versions := map[string]string{}
	for _, r := range requests {
		if !r.Written() || r.Namespace != beside.Namespace || r.Object == "" || r.Object == beside.Name || r.Resource == Events || r.Resource == "leases" {
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

// Refused are the manager's requests that it had no right to, each kind of request once, with a message in few words. A quota and a
// namespace that is going away are answered with the same status, so every refusal is asked about again.
func Refused(ctx context.Context) ([]apiproxy.Request, error) {
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
