package apiproxy_test

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// asProtobuf is what the API server sends to a client that asked for protobuf.
func asProtobuf(t *testing.T, object runtime.Object) string {
	t.Helper()
	var out bytes.Buffer
	if err := protobuf.NewSerializer(clientgoscheme.Scheme, clientgoscheme.Scheme).Encode(object, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheVersionInTheAnswerToAChangeIsRemembered(t *testing.T) {
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "cache", ResourceVersion: "42"},
	}
	const asJSON = `{"kind":"Memcached","metadata":{"name":"cache","resourceVersion":"42"},"spec":{}}`
	const leaving = `{"kind":"Memcached","metadata":{"name":"cache","resourceVersion":"42","deletionTimestamp":"2026-11-21T10:00:00Z"},"spec":{}}`
	for _, test := range []struct {
		name, method, answer, version string
		header                        string
		gone                          bool // with this write
		status                        int
	}{
		{name: "created as JSON", method: http.MethodPost, answer: asJSON, version: "42", status: 201},
		{name: "created as protobuf", method: http.MethodPost, answer: asProtobuf(t, deployment), version: "42", status: 201},
		{name: "updated", method: http.MethodPut, answer: asJSON, version: "42", status: 200},
		{name: "patched", method: http.MethodPatch, answer: asJSON, version: "42", status: 200},
		{name: "a field of its own that is almost a known one", method: http.MethodPut, version: "42", status: 200,
			answer: strings.Replace(asJSON, `"metadata"`, `"METADATA":{"deletionTimestamp":"2026-11-21T10:00:00Z"},"metadata"`, 1)},
		{name: "the last finalizer is removed", method: http.MethodPut, answer: leaving, gone: true, status: 200},
		{name: "another finalizer holds it", method: http.MethodPut, version: "42", status: 200,
			answer: strings.Replace(leaving, `"name"`, `"finalizers":["orphan"],"name"`, 1)},
		{name: "read", method: http.MethodGet, answer: asJSON, status: 200},
		{name: "deleted", method: http.MethodDelete, answer: asJSON, status: 200},
		{name: "refused", method: http.MethodPut, answer: asJSON, status: 409},
		{name: "in another encoding", method: http.MethodPut, answer: asJSON, header: "br", status: 200},
		{name: "no object", method: http.MethodPut, answer: "what?", status: 200},
		{name: "large", method: http.MethodPut, answer: strings.Repeat(" ", 1<<17) + asJSON, version: "42", status: 200},
	} {
		proxy, client := start(t, func(w http.ResponseWriter, _ *http.Request) {
			if test.header != "" {
				w.Header().Set("Content-Encoding", test.header)
			}
			w.WriteHeader(test.status)
			fmt.Fprint(w, test.answer)
		})
		if got := send(t, client, test.method, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/cache"); got != test.answer {
			t.Errorf("%s: the client got %d bytes of %d", test.name, len(got), len(test.answer))
		}
		got := proxy.Since(0)[0]
		if got.ResourceVersion != test.version || (got.Object == "cache") != (test.version != "" || test.gone) {
			t.Errorf("%s: recorded version %q of %q, want %q", test.name, got.ResourceVersion, got.Object, test.version)
		}
	}
}
