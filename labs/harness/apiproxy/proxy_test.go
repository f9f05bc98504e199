package apiproxy_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// start passes requests on to handler, and gives a client that trusts the proxy.
func start(t *testing.T, filter apiproxy.NamespaceFilter, handler http.HandlerFunc) (*apiproxy.Proxy, *http.Client) {
	t.Helper()
	upstream := httptest.NewTLSServer(handler)
	t.Cleanup(upstream.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	admin := &rest.Config{Host: upstream.URL, BearerToken: "of-the-admin", TLSClientConfig: rest.TLSClientConfig{CAData: ca}}
	proxy, err := apiproxy.Start(admin, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Stop)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(proxy.CA())
	return proxy, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

func send(t *testing.T, client *http.Client, method, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer of-the-client")
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestRequestsAreDescribedAsRBACDoes(t *testing.T) {
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments?dryRun=All")
	send(t, client, http.MethodPatch, proxy.URL()+"/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m/status")
	send(t, client, http.MethodGet, proxy.URL()+"/api/v1/pods?watch=true")
	send(t, client, http.MethodGet, proxy.URL()+"/version")
	want := []apiproxy.Request{
		{Verb: "create", Group: "apps", Resource: "deployments", Namespace: "n", DryRun: true, Status: 201},
		{Verb: "patch", Group: "cache.example.com", Resource: "memcacheds", Subresource: "status", Namespace: "n", Name: "m", Status: 201},
		{Verb: "watch", Resource: "pods", Status: 201},
		{Verb: "get", Resource: "/version", Status: 201},
	}
	if diff := cmp.Diff(want, proxy.Since(0), cmpopts.IgnoreFields(apiproxy.Request{}, "Time")); diff != "" {
		t.Error(diff)
	}
}

// A manager must not have the rights of the checks.
func TestClientKeepsItsIdentity(t *testing.T) {
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	if _, got := send(t, client, http.MethodGet, proxy.URL()+"/api/v1/pods"); got != "Bearer of-the-client" {
		t.Errorf("the API server saw %q", got)
	}
}

func TestRefusalReachesRecordAndClient(t *testing.T) {
	const answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","code":403}`
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, answer)
	})
	if _, got := send(t, client, http.MethodGet, proxy.URL()+"/api/v1/secrets"); got != answer {
		t.Errorf("the client got %q", got)
	}
	if got := proxy.Since(0)[0]; got.Message != "you may not" || got.Status != http.StatusForbidden {
		t.Errorf("recorded %+v", got)
	}
}

func TestWatchIsAStream(t *testing.T) {
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "first")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	resp, err := client.Get(proxy.URL() + "/api/v1/pods?watch=true")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, len("first"))
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "first" {
		t.Errorf("read %q, %v, while the answer goes on", line, err)
	}
}

// A write may take effect although the manager was killed in the middle of it.
func TestUnansweredWriteIsRecorded(t *testing.T) {
	proxy, client := start(t, apiproxy.NamespaceFilter{}, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	send(t, client, http.MethodDelete, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/m")
	send(t, client, http.MethodGet, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/m")
	if got := proxy.Since(0); len(got) != 1 || got[0].Verb != "delete" || !got[0].Written() {
		t.Errorf("recorded %v", got)
	}
}
