// Package apiproxy is a reverse proxy between one client and an API server. It remembers what was asked, can refuse writes and
// act before and after each request ([Proxy.Outage], [Proxy.Disturb]), and can hide namespaces ([NamespaceFilter]).
package apiproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/labs/internal/loopback"
)

// Proxy listens on loopback, with TLS.
type Proxy struct {
	server *httptest.Server
	token  string
	filter NamespaceFilter

	mu          sync.Mutex
	disturbance Disturbance
	outage      Outage
	requests    []Request
}

// Start begins to pass requests on to the API server of upstream, of which only the address and the certificate authority are
// used. token is what [Proxy.Token] gives to clients. The zero filter shows everything. Stop it with [Proxy.Stop].
func Start(upstream *rest.Config, token string, filter NamespaceFilter) (*Proxy, error) {
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("parse API server address: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(upstream))
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", upstream.Host, err)
	}
	listener, err := loopback.Listen()
	if err != nil {
		return nil, fmt.Errorf("listen for the manager: %w", err)
	}
	p := &Proxy{token: token, filter: filter}
	silent := log.New(io.Discard, "", 0) // a client that breaks off is no news, and Ginkgo keeps all that is printed
	p.server = httptest.NewUnstartedServer(p.recorded(&httputil.ReverseProxy{
		Rewrite:        func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:      transport,
		ModifyResponse: p.answered,
		ErrorHandler:   p.unanswered,
		ErrorLog:       silent,
	}))
	_ = p.server.Listener.Close()
	p.server.Listener, p.server.Config.ErrorLog = listener, silent
	p.server.StartTLS()
	return p, nil
}

// URL is where clients connect to.
func (p *Proxy) URL() string { return p.server.URL }

// Address is the host and port of [Proxy.URL].
func (p *Proxy) Address() string { return p.server.Listener.Addr().String() }

// Token is what the client has to send.
func (p *Proxy) Token() string { return p.token }

// CA is the certificate that clients have to trust, as PEM.
func (p *Proxy) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Stop closes the listener and every connection.
func (p *Proxy) Stop() error {
	p.server.CloseClientConnections()
	p.server.Close()
	return nil
}

// recordKey is the context key under which a request's record travels to its answer.
type recordKey struct{}

// recorded describes each request, and passes on those that are neither hidden nor refused.
func (p *Proxy) recorded(next http.Handler) http.Handler {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := resolver.NewRequestInfo(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		record := describe(req, info)
		if p.filter.hides(info.Namespace) {
			why := errors.New("this namespace belongs to a check that runs at the same time")
			p.refuse(w, record, apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, why))
			return
		}
		disturbance, outage := p.disturbances()
		refusal := outage.refusal(record)
		if err := p.filter.narrow(req.URL, record); err != nil { // unfiltered, it would show objects of other checks
			refusal = apierrors.NewServiceUnavailable(err.Error())
		}
		if refusal != nil {
			record.Disturbed = true
			p.refuse(w, record, refusal)
			return
		}
		record.Disturbed = disturbance.Before != nil && disturbance.Before(req.Context(), record)
		next.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), recordKey{}, &record)))
	})
}

// answered records the API server's answer, before the client hears of it.
func (p *Proxy) answered(resp *http.Response) error {
	record := resp.Request.Context().Value(recordKey{}).(*Request)
	record.Status, record.Answered = resp.StatusCode, time.Now()
	refused := record.Status >= http.StatusBadRequest
	if refused || record.Verb == "create" || record.Verb == "update" || record.Verb == "patch" {
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return err
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		if refused {
			record.Message = message(body)
		} else {
			record.readObject(body)
		}
	}
	record.Disturbed = record.Disturbed && record.Status == http.StatusConflict
	p.add(*record)
	if d, _ := p.disturbances(); d.After != nil {
		d.After(*record)
	}
	return nil
}

// unanswered is called when there was no answer, or the client hung up. A write is recorded: it may have been done.
func (p *Proxy) unanswered(w http.ResponseWriter, req *http.Request, _ error) {
	if record := req.Context().Value(recordKey{}).(*Request); record.Mutating() {
		record.Status, record.Disturbed = http.StatusBadGateway, false
		p.add(*record)
	}
	w.WriteHeader(http.StatusBadGateway)
}

// refuse answers as the API server does.
func (p *Proxy) refuse(w http.ResponseWriter, record Request, err *apierrors.StatusError) {
	status := err.Status()
	status.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Status"))
	record.Status, record.Message = int(status.Code), status.Message
	p.add(record)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(record.Status)
	_ = json.NewEncoder(w).Encode(&status)
}

// message reads the message of a refusal, "" if there is none.
func message(body []byte) string {
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if status, ok := obj.(*metav1.Status); err == nil && ok {
		return status.Message
	}
	return ""
}
