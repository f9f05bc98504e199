package harness

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// Requests are what the manager has sent to the API server since index, in order. Without a manager there are none.
func Requests(since int) []apiproxy.Request {
	if suite.env == nil {
		return nil
	}
	return suite.env.proxy.Since(since)
}

// Now is the index of the manager's next request: pass it to [Requests] later.
func Now() int {
	if suite.env == nil {
		return 0
	}
	return suite.env.proxy.Count()
}

// LogLines are the manager's recent lines of output that contain text.
func LogLines(text string) []string {
	if suite.env == nil {
		return nil
	}
	return suite.env.manager.output.Lines(text)
}

// Writes are the mutating requests of the manager since index that concern the Memcached, its status
// or its Deployment.
func (m Memcached) Writes(since int) []apiproxy.Request { return m.among(Requests(since)) }

// among are those of the requests that ask for a change of this Memcached, its status or its Deployment.
func (m Memcached) among(requests []apiproxy.Request) []apiproxy.Request {
	return slices.DeleteFunc(requests, func(r apiproxy.Request) bool {
		return !r.Mutating() || r.Namespace != m.Namespace || r.Name != "" && r.Name != m.Name
	})
}

// Refused are the manager's requests since index that it had no right to, each kind of request once. A
// quota and a namespace that is going away are answered with the same status, so every refusal is
// asked about again.
func Refused(ctx context.Context, since int) ([]apiproxy.Request, error) {
	var refused []apiproxy.Request
	asked := map[string]bool{}
	for _, r := range Requests(since) {
		key := r.Verb + " " + r.Group + "/" + r.Resource + "/" + r.Subresource
		if r.Status != http.StatusForbidden || asked[key] {
			continue
		}
		asked[key] = true
		allowed, err := Allowed(ctx, r.Verb, r.Group, r.Resource, r.Subresource, r.Namespace)
		if err != nil {
			return nil, err
		}
		if !allowed || asSomebodyElse(r) {
			refused = append(refused, r)
		}
	}
	return refused, nil
}

// Refusal is a refused request in one short line.
func Refusal(r apiproxy.Request) string { return r.Kind() + ": " + r.Reason(ManagerUser()) }

// asSomebodyElse says whether the manager was refused under another name than its own: it did not use the
// configuration that it was given as it is.
func asSomebodyElse(r apiproxy.Request) bool {
	return strings.Contains(r.Message, `User "`) && !strings.Contains(r.Message, `User "`+ManagerUser()+`"`)
}

// Allowed asks the API server whether the manager has a right.
func Allowed(ctx context.Context, verb, group, resource, subresource, namespace string) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   ManagerUser(),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + systemNamespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Verb: verb, Group: group, Resource: resource, Subresource: subresource, Namespace: namespace,
		},
	}}
	if err := suite.admin.Create(ctx, review); err != nil {
		return false, fmt.Errorf("ask for the manager's rights: %w", err)
	}
	return review.Status.Allowed, nil
}
