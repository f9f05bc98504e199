// Package apiproxy is a reverse proxy between one client and an API server. It records all requests, can refuse writes and
// act before and after each request ([Proxy.Disturb]), and can hide namespaces ([NamespaceFilter]).
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
	"slices"
	"strings"
	"sync"

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
	filter NamespaceFilter

	mu          sync.Mutex
	disturbance Disturbance
	requests    []Request
}

// Start begins to pass requests on to the API server of upstream, of which only the address and the certificate authority are
// used: clients show tokens of their own. The zero filter shows everything. Stop it with [Proxy.Stop].
func Start(upstream *rest.Config, filter NamespaceFilter) (*Proxy, error) {
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
	p := &Proxy{filter: filter}
	silent := log.New(io.Discard, "", 0) // a client may disconnect at any time, and Ginkgo keeps all that is printed
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

// CA is the certificate that clients have to trust, as PEM.
func (p *Proxy) CA() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
}

// Stop closes the listener and every connection.
func (p *Proxy) Stop() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Disturbance is what the proxy does to requests. Its functions may be nil. Several goroutines call them at once.
type Disturbance struct {
	// Outage is a resource, such as "deployments". The proxy refuses all writes of it and of its subresources, with the error of a
	// failed admission webhook. Reads and watches go on. "" is no resource.
	Outage string
	// Before is called ahead of each request, which waits for it. It returns true if it did something that the API server may
	// answer with a conflict; such an answer is marked as Disturbed.
	Before func(context.Context, Request) bool
	// After is called when the API server has answered, before the client gets the answer.
	After func(Request)
}

// Disturb applies d to all requests from now on, in place of the earlier one. The zero Disturbance disturbs nothing.
func (p *Proxy) Disturb(d Disturbance) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disturbance = d
}

func (p *Proxy) disturbed() Disturbance {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.disturbance
}

// add keeps the record of a request.
func (p *Proxy) add(r Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, r)
}

// Count is how many requests are recorded. It is the index of the next one.
func (p *Proxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests)
}

// Since returns the requests from index on, in the order in which their answers began.
func (p *Proxy) Since(index int) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests[min(index, len(p.requests)):])
}

// recordKey is the context key under which a request's record travels to its answer.
type recordKey struct{}

// recorded records each request, and passes on those that are neither hidden nor refused.
func (p *Proxy) recorded(next http.Handler) http.Handler {
	resolver := &request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		info, err := resolver.NewRequestInfo(req)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		record := describe(req, info)
		if slices.Contains(p.filter.Hidden, info.Namespace) {
			why := errors.New("this namespace belongs to a check that runs at the same time")
			p.refuse(w, record, apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, why))
			return
		}
		disturbance, refusal := p.disturbed(), (*apierrors.StatusError)(nil)
		if record.Mutating() && record.Resource == disturbance.Outage {
			refusal = apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded"))
		}
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

// answered records the API server's answer, before the client gets it.
func (p *Proxy) answered(resp *http.Response) error {
	record := resp.Request.Context().Value(recordKey{}).(*Request)
	record.Status = resp.StatusCode
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
	if after := p.disturbed().After; after != nil {
		after(*record)
	}
	return nil
}

// unanswered is called if the API server did not answer, or the client disconnected. It records writes, which may have taken effect.
func (p *Proxy) unanswered(w http.ResponseWriter, req *http.Request, _ error) {
	if record := req.Context().Value(recordKey{}).(*Request); record.Mutating() {
		record.Status, record.Disturbed = http.StatusBadGateway, false
		p.add(*record)
	}
	w.WriteHeader(http.StatusBadGateway)
}

// refuse records the request, and answers it with err as the API server would.
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

// NamespaceFilter hides namespaces from a client. Lists and watches of namespaced objects and of namespaces leave them out.
// A request in a hidden namespace is forbidden. The zero value hides nothing.
type NamespaceFilter struct {
	// Hidden are the namespaces.
	Hidden []string
	// Namespaced says whether a resource is namespaced. After an error the proxy answers 503.
	Namespaced func(group, resource string) (bool, error)
}

// narrow adds a field selector, so that the API server leaves out what is hidden. Every resource can be selected by metadata.name
// and metadata.namespace (https://kubernetes.io/docs/concepts/overview/working-with-objects/field-selectors/).
func (f NamespaceFilter) narrow(u *url.URL, r Request) error {
	selects := r.Verb == "list" || r.Verb == "watch" || r.Verb == "deletecollection"
	if len(f.Hidden) == 0 || !selects || r.Subresource != "" || r.Namespace != "" {
		return nil
	}
	field := "metadata.namespace"
	if r.Group == "" && r.Resource == "namespaces" {
		field = "metadata.name"
	} else if namespaced, err := f.Namespaced(r.Group, r.Resource); !namespaced || err != nil {
		return err
	}
	query := u.Query()
	terms := slices.DeleteFunc(query["fieldSelector"], func(term string) bool { return term == "" })
	for _, namespace := range f.Hidden {
		terms = append(terms, field+"!="+namespace)
	}
	query.Set("fieldSelector", strings.Join(terms, ","))
	u.RawQuery = query.Encode()
	return nil
}
