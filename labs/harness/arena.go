package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/example/operator-lab/labs/harness/recorder"
)

// CauseManagerExited is the cause when the learner's manager ended by itself, or could not be started.
const CauseManagerExited = "manager-exited"

// CauseManagerSilent is the cause when the manager runs and asks the API server for nothing.
const CauseManagerSilent = "manager-silent"

// endpoint is where a stage answers questions about its manager.
type endpoint struct {
	URL   string `json:"url"`
	Token string `json:"token"`
}

// arena asks a stage about its manager; the one of all checks is on the first Ginkgo process.
type arena struct {
	endpoint
	client http.Client
}

func newArena(e endpoint) *arena {
	return &arena{endpoint: e, client: http.Client{Timeout: 5 * time.Second}}
}

func (a *arena) get(ctx context.Context, path string, query url.Values, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.URL+path+"?"+query.Encode(), nil)
	if err != nil {
		return fmt.Errorf("ask the first process: %w", err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token)
	resp, err := a.client.Do(req)
	if err != nil {
		return fmt.Errorf("ask the first process: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask the first process: %s", resp.Status)
	}
	if into == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(into)
}

// itsArena tells about the manager that works for the running check.
func itsArena() *arena {
	if suite.apart != nil {
		return newArena(suite.apart.endpoint())
	}
	return suite.arena
}

// Requests are what the manager has sent to the API server since index, in order.
func Requests(ctx context.Context, since int) ([]recorder.Request, error) {
	var requests []recorder.Request
	err := itsArena().get(ctx, pathRequests, url.Values{"since": {strconv.Itoa(since)}}, &requests)
	return requests, err
}

// Now is the index of the manager's next request: pass it to [Requests] later.
func Now(ctx context.Context) (int, error) {
	n := 0
	err := itsArena().get(ctx, pathCount, nil, &n)
	return n, err
}

// LogLines are the manager's recent lines of output that contain text.
func LogLines(ctx context.Context, text string) ([]string, error) {
	var lines []string
	err := itsArena().get(ctx, pathLogLines, url.Values{"text": {text}}, &lines)
	return lines, err
}

// Writes are the mutating requests of the manager since index that concern the Memcached, its status
// or its Deployment.
func (m Memcached) Writes(ctx context.Context, since int) ([]recorder.Request, error) {
	requests, err := Requests(ctx, since)
	return m.among(requests), err
}

// among are those of the requests that ask for a change of this Memcached, its status or its Deployment.
func (m Memcached) among(requests []recorder.Request) []recorder.Request {
	return slices.DeleteFunc(requests, func(r recorder.Request) bool {
		return !r.Mutating() || r.Namespace != m.Namespace || r.Name != "" && r.Name != m.Name
	})
}

// passes is the manager's counter of reconciles, -1 when it exposes none.
func passes(ctx context.Context) (int, error) {
	n := -1
	err := itsArena().get(ctx, pathPasses, nil, &n)
	return n, err
}

// Refused are the manager's requests since index that it had no right to, each kind of request once. A
// quota and a namespace that is going away are answered with the same status, so every refusal is
// asked about again.
func Refused(ctx context.Context, since int) ([]recorder.Request, error) {
	requests, err := Requests(ctx, since)
	if err != nil {
		return nil, err
	}
	var refused []recorder.Request
	asked := map[string]bool{}
	for _, r := range requests {
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
func Refusal(r recorder.Request) string { return r.Kind() + ": " + r.Reason(ManagerUser()) }

// asSomebodyElse says whether the manager was refused under another name than its own: it did not use the
// configuration that it was given as it is.
func asSomebodyElse(r recorder.Request) bool {
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
