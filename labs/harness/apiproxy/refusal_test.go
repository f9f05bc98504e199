package apiproxy_test

import (
	"testing"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

func TestARefusalIsSaidInFewWords(t *testing.T) {
	const noRight = `memcacheds.cache.example.com "m" is forbidden: User "the-manager" cannot update resource "memcacheds/status" in API group "cache.example.com" in the namespace "n"`
	status := apiproxy.Request{Verb: "update", Group: "cache.example.com", Resource: "memcacheds", Subresource: "status", Namespace: "n", Name: "m", Status: 403, Message: noRight}
	for _, tc := range []struct {
		request      apiproxy.Request
		user         string
		kind, reason string
	}{
		{status, "the-manager", "update memcacheds.cache.example.com/status", "it has no right to do that"},
		{status, "somebody", "update memcacheds.cache.example.com/status", "the-manager has no right to do that, and your manager asks in its name"},
		{apiproxy.Request{Verb: "list", Resource: "pods", Status: 429}, "", "list pods in all namespaces", "Too Many Requests"},
		{apiproxy.Request{Verb: "get", Resource: "/version", Status: 403, Message: "no"}, "", "get /version", "no"},
	} {
		if kind, reason := tc.request.Kind(), tc.request.Reason(tc.user); kind != tc.kind || reason != tc.reason {
			t.Errorf("got %q because %q, want %q because %q", kind, reason, tc.kind, tc.reason)
		}
	}
}
