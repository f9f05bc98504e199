package apiproxy_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// start records what is sent to handler, and gives a client that trusts the proxy.
func start(t *testing.T, handler http.HandlerFunc) (*apiproxy.Proxy, *http.Client) {
	t.Helper()
	return startWith(t, apiproxy.NamespaceFilter{}, handler)
}

func startWith(t *testing.T, filter apiproxy.NamespaceFilter, handler http.HandlerFunc) (*apiproxy.Proxy, *http.Client) {
	t.Helper()
	return startTo(t, httptest.NewTLSServer(handler), filter)
}

func startTo(t *testing.T, upstream *httptest.Server, filter apiproxy.NamespaceFilter) (*apiproxy.Proxy, *http.Client) {
	t.Helper()
	t.Cleanup(upstream.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: upstream.Certificate().Raw})
	proxy, err := apiproxy.Start(&rest.Config{Host: upstream.URL, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, realToken, filter)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = proxy.Stop() })
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(proxy.CA())
	return proxy, &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// realToken is the one that the API server would know.
const realToken = "real"

func send(t *testing.T, client *http.Client, method, url string) string {
	t.Helper()
	return sendAs(t, client, "of-the-client", method, url)
}

func sendAs(t *testing.T, client *http.Client, token, method, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// A client that hangs up as soon as its write has arrived would otherwise write what no check counts.
func TestAWriteIsRecordedAlthoughItsClientHangsUp(t *testing.T) {
	arrived, hungUp := make(chan struct{}), make(chan struct{})
	proxy, client := start(t, func(w http.ResponseWriter, req *http.Request) {
		close(arrived)
		<-hungUp
		select {
		case <-req.Context().Done():
		case <-time.After(500 * time.Millisecond): // nobody tells that the client has gone
		}
		w.WriteHeader(http.StatusAccepted)
	})
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/m", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		<-arrived
		hangUp()
	}()
	if _, err := client.Do(req); !errors.Is(err, context.Canceled) { //nolint:bodyclose // there is none
		t.Fatalf("the client has not hung up: %v", err)
	}
	close(hungUp)
	gomega.NewWithT(t).Eventually(proxy.Count).WithTimeout(10 * time.Second).Should(gomega.Equal(1))
	if got := proxy.Since(0)[0]; got.Verb != "delete" || got.Status != http.StatusAccepted {
		t.Errorf("recorded %v", got)
	}
}

// A write of which nobody knows whether it was done would otherwise be one that no check counts.
func TestAWriteWithoutAnAnswerIsRecorded(t *testing.T) {
	proxy, client := start(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	send(t, client, http.MethodDelete, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/m")
	send(t, client, http.MethodGet, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments/m")
	got := proxy.Since(0)
	if len(got) != 1 || got[0].Verb != "delete" || !got[0].Written() {
		t.Errorf("recorded %v", got)
	}
}

func TestADryRunIsNoWrite(t *testing.T) {
	const path = "/apis/apps/v1/namespaces/n/deployments"
	for asked, want := range map[string]bool{
		"POST " + path + "?dryRun=All":                      false,
		"PATCH " + path + "/m/status?dryRun=All&dryRun=All": false,
		"POST " + path:                                         true,
		"POST " + path + "?dryRun=":                            true,
		"POST " + path + "?dryRun=All&dryRun=no":               true,
		"DELETE " + path + "/m?dryRun=All":                     true, // its body may say otherwise
		"DELETE " + path + "?dryRun=All":                       true,
		"POST /api/v1/namespaces/n/pods/m/eviction?dryRun=All": true,
	} {
		method, address, _ := strings.Cut(asked, " ")
		proxy, client := start(t, func(http.ResponseWriter, *http.Request) {})
		send(t, client, method, proxy.URL()+address)
		if got := proxy.Since(0)[0].Mutating(); got != want {
			t.Errorf("%s: %v", asked, got)
		}
	}
}

func TestRequestsAreDescribedInTheWordsOfRBAC(t *testing.T) {
	proxy, client := start(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusCreated) })
	send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments")
	send(t, client, http.MethodPatch, proxy.URL()+"/apis/cache.example.com/v1alpha1/namespaces/n/memcacheds/m/status")
	send(t, client, http.MethodGet, proxy.URL()+"/api/v1/pods?watch=true")
	want := []apiproxy.Request{
		{Index: 0, Verb: "create", Group: "apps", Resource: "deployments", Namespace: "n", Status: 201},
		{Index: 1, Verb: "patch", Group: "cache.example.com", Resource: "memcacheds", Subresource: "status", Namespace: "n", Name: "m", Status: 201},
		{Index: 2, Verb: "watch", Resource: "pods", Status: 201},
	}
	if diff := cmp.Diff(want, proxy.Since(0), cmpopts.IgnoreFields(apiproxy.Request{}, "Time", "Answered")); diff != "" {
		t.Error(diff)
	}
	if got := proxy.Since(2); len(got) != 1 || got[0].Mutating() {
		t.Errorf("since 2: %v", got)
	}
}

// A client that sends something else than its token is told by the API server that nobody knows it.
func TestOnlyTheProxysTokenIsReplaced(t *testing.T) {
	proxy, client := start(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header.Get("Authorization")) })
	for token, want := range map[string]string{proxy.Token(): realToken, "of-somebody-else": "unknown"} {
		if got := sendAs(t, client, token, http.MethodGet, proxy.URL()+"/api/v1/pods"); got != "Bearer "+want {
			t.Errorf("the API server saw %q, want %q", got, want)
		}
	}
	another, _ := start(t, func(http.ResponseWriter, *http.Request) {})
	if proxy.Token() == another.Token() || len(proxy.Token()) < 20 {
		t.Errorf("two proxies have the tokens %q and %q", proxy.Token(), another.Token())
	}
}

func TestARefusalIsRememberedAndStillReachesTheClient(t *testing.T) {
	const answer = `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"you may not","code":403}`
	proxy, client := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, answer)
	})
	if got := send(t, client, http.MethodGet, proxy.URL()+"/api/v1/secrets"); got != answer {
		t.Errorf("the client got %q", got)
	}
	if got := proxy.Since(0)[0]; got.Message != "you may not" || got.Status != http.StatusForbidden {
		t.Errorf("recorded %+v", got)
	}
}

func TestAWatchIsAStream(t *testing.T) {
	more := make(chan struct{})
	proxy, client := start(t, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintln(w, "first")
		w.(http.Flusher).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
	})
	defer close(more)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, proxy.URL()+"/api/v1/pods?watch=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	line := make([]byte, len("first"))
	if _, err := io.ReadFull(resp.Body, line); err != nil || string(line) != "first" {
		t.Errorf("read %q, %v, while the answer goes on", line, err)
	}
}

// A client that sends a megabyte gets a megabyte of refusal back; remembering it a few thousand times
// would be the end of this process.
func TestWhatIsRememberedOfOneRequestIsShort(t *testing.T) {
	long := strings.Repeat("é", 30_000)
	proxy, client := start(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":%q,"code":422}`, long)
	})
	answer := send(t, client, http.MethodPost, proxy.URL()+"/apis/apps/v1/namespaces/n/deployments")
	if !strings.Contains(answer, long) {
		t.Error("the client got less than the API server said")
	}
	got := proxy.Since(0)[0]
	if n := len(got.Message); n == 0 || n > 2000 {
		t.Errorf("%d bytes of the refusal are remembered", n)
	}
	if !utf8.ValidString(got.Message) {
		t.Error("the refusal was cut in the middle of a letter")
	}
}

// Of a client that nobody trusts, a connection is one request: those of HTTP/2 have hundreds, and all stay whose answer is not read.
func TestAConnectionHasOneRequestAtATime(t *testing.T) {
	proxy, _ := start(t, func(http.ResponseWriter, *http.Request) {})
	conn, err := tls.Dial("tcp", proxy.Address(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if got := conn.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("it speaks %q", got)
	}
}

// Ginkgo keeps all that a check's process prints, and a client that speaks no TLS may come as often as it likes.
func TestNothingIsPrintedAboutAClient(t *testing.T) {
	var printed bytes.Buffer
	log.SetOutput(&printed)
	defer log.SetOutput(os.Stderr)
	proxy, _ := start(t, func(http.ResponseWriter, *http.Request) {})
	conn, err := net.Dial("tcp", proxy.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("GET / HTTP/1.0\r\n\r\n")); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, conn) // until it is refused
	if err := proxy.Stop(); err != nil {
		t.Error(err)
	}
	if printed.Len() > 0 {
		t.Errorf("it printed %q", &printed)
	}
}
