package apiproxy_test

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

func TestWrittenAndCreated(t *testing.T) {
	for _, tc := range []struct {
		request          apiproxy.Request
		written, created bool
	}{
		{apiproxy.Request{Verb: "create", Status: http.StatusCreated}, true, true},
		{apiproxy.Request{Verb: "patch", Status: http.StatusCreated}, true, true}, // a server-side apply
		{apiproxy.Request{Verb: "patch", Status: http.StatusOK}, true, false},
		{apiproxy.Request{Verb: "delete", Status: http.StatusBadGateway}, true, false},
		{apiproxy.Request{Verb: "create", Status: http.StatusConflict}, false, false},
		{apiproxy.Request{Verb: "list", Status: http.StatusOK}, false, false},
		{apiproxy.Request{Verb: "create", Status: http.StatusCreated, DryRun: true}, false, false},
		{apiproxy.Request{Verb: "update", Status: http.StatusInternalServerError, Disturbed: true}, false, false},
	} {
		if written, created := tc.request.Written(), tc.request.Created(); written != tc.written || created != tc.created {
			t.Errorf("%+v: written %v, created %v", tc.request, written, created)
		}
	}
}

func TestKindAndReason(t *testing.T) {
	const noRight = `forbidden: User "the-manager" cannot update resource "memcacheds/status"`
	status := apiproxy.Request{Verb: "update", Group: "cache.example.com", Resource: "memcacheds", Subresource: "status", Namespace: "n", Name: "m", Status: 403, Message: noRight}
	for _, tc := range []struct {
		request            apiproxy.Request
		user, kind, reason string
	}{
		{status, "the-manager", "update memcacheds.cache.example.com/status", "it has no right to do that"},
		{status, "somebody", "update memcacheds.cache.example.com/status", "the-manager has no right to do that, and your manager asks in its name"},
		{apiproxy.Request{Verb: "list", Resource: "pods", Status: 429}, "", "list pods in all namespaces", "Too Many Requests"},
	} {
		if kind, reason := tc.request.Kind(), tc.request.Reason(tc.user); kind != tc.kind || reason != tc.reason {
			t.Errorf("got %q because %q, want %q because %q", kind, reason, tc.kind, tc.reason)
		}
	}
}

func TestAnswerToWriteShowsVersion(t *testing.T) {
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "cache", ResourceVersion: "42"},
	}
	var asProtobuf bytes.Buffer
	if err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(deployment, &asProtobuf); err != nil {
		t.Fatal(err)
	}
	const asJSON = `{"kind":"Memcached","metadata":{"name":"cache","resourceVersion":"42"},"spec":{}}`
	const leaving = `{"kind":"Memcached","metadata":{"name":"cache","resourceVersion":"42","deletionTimestamp":"2026-11-21T10:00:00Z"},"spec":{}}`
	for name, test := range map[string]struct {
		method, answer  string
		status          int
		object, version string
	}{
		"created as protobuf":           {http.MethodPost, asProtobuf.String(), 201, "cache", "42"},
		"patched":                       {http.MethodPatch, asJSON, 200, "cache", "42"},
		"the last finalizer is removed": {http.MethodPut, leaving, 200, "cache", ""},
		"another finalizer is left":     {http.MethodPut, strings.Replace(leaving, `"name"`, `"finalizers":["orphan"],"name"`, 1), 200, "cache", "42"},
		"read":                          {http.MethodGet, asJSON, 200, "", ""},
		"refused":                       {http.MethodPut, asJSON, 409, "", ""},
	} {
		proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(test.status)
			_, _ = w.Write([]byte(test.answer))
		})
		if _, got := send(t, client, test.method, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/cache"); got != test.answer {
			t.Errorf("%s: the client got %q", name, got)
		}
		if got := proxy.Since(0)[0]; got.ResourceVersion != test.version || got.Object != test.object {
			t.Errorf("%s: recorded version %q of %q", name, got.ResourceVersion, got.Object)
		}
	}
}
