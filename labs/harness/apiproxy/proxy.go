// Package apiproxy is a reverse proxy between one client and an API server that remembers what was
// asked. Every request passes unchanged but for the client's token ([Proxy.Token]), unless a disturbance is asked for with
// [Proxy.Disturb] or [Proxy.Outage], or a [NamespaceFilter]
// that shows a client a part of the cluster only.
//
// A client may send as much as it likes: the proxy counts everything, and remembers the latest.
package apiproxy

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/labs/internal/loopback"
)

// Request is one request as the API server saw it.
type Request struct {
	// Index counts from 0 in the order in which answers began.
	Index int `json:"index"`
	// Time is when the request arrived.
	Time time.Time `json:"time"`
	// Verb is the Kubernetes verb: get, list, watch, create, update, patch, delete, deletecollection.
	Verb        string `json:"verb"`
	Group       string `json:"group"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource,omitempty"`
	Namespace   string `json:"namespace,omitempty"`
	Name        string `json:"name,omitempty"`
	// Status is the HTTP status of the answer, 0 when an outage kept the answer from the client.
	Status int `json:"status"`
	// Message is the API server's reason for a refusal, "" when it did not refuse.
	Message string `json:"message,omitempty"`
	// Disturbed says that the harness caused the answer, and not the client.
	Disturbed bool `json:"disturbed,omitempty"`
	// Answered is when the API server's answer began, zero when there was none.
	Answered time.Time `json:"answered,omitzero"`
	// ResourceVersion and Object, a name, are those of the object in the answer to a create, update or
	// patch, "" where the answer shows none. A write that changed nothing is answered with the version
	// that was there before.
	ResourceVersion string `json:"resourceVersion,omitempty"`
	Object          string `json:"object,omitempty"`
	// DryRun says that nothing was to be changed.
	DryRun bool `json:"dryRun,omitempty"`
}

// mutating are the verbs that ask for a change.
var mutating = sets.New("create", "update", "patch", "delete", "deletecollection")

// Mutating says whether the request asked for a change.
func (r Request) Mutating() bool { return mutating.Has(r.Verb) && !r.DryRun }

// Refused says whether the API server did not do what was asked, for a reason that the client has to
// answer for. A request that the harness disturbed is not refused.
func (r Request) Refused() bool { return r.Status >= http.StatusBadRequest && !r.Disturbed }

// Written says whether the request changed something, as far as its answer tells. One with an error leaves that open, if it is of a
// server with a fault, or about the form of the answer, or about the second of many objects.
func (r Request) Written() bool {
	done := r.Status < http.StatusBadRequest || r.Status >= http.StatusInternalServerError || r.Status == http.StatusNotAcceptable || r.Verb == "deletecollection" && r.Status == http.StatusConflict
	return r.Mutating() && !r.Disturbed && done
}

// Created says whether the request has made an object, as far as its answer tells, by whatever verb: a patch can, too, by server-side
// apply.
func (r Request) Created() bool {
	return r.Written() && (r.Verb == "create" || r.Status == http.StatusCreated)
}

// String is the request as kubectl auth can-i would write it, with its answer.
func (r Request) String() string {
	resource := r.Resource
	if r.Group != "" {
		resource += "." + r.Group
	}
	if r.Subresource != "" {
		resource += "/" + r.Subresource
	}
	object := strings.Trim(r.Namespace+"/"+r.Name, "/")
	text := strings.TrimRight(fmt.Sprintf("%s %s %s", r.Verb, resource, object), " ")
	switch {
	case r.Disturbed:
		return text + " (disturbed by the check)"
	case r.Message != "":
		return fmt.Sprintf("%s: %s", text, r.Message)
	default:
		return fmt.Sprintf("%s -> %d", text, r.Status)
	}
}

// Proxy listens on loopback with a certificate of its own.
type Proxy struct {
	server       *http.Server
	listener     net.Listener
	ca           []byte
	token        string
	resolver     *request.RequestInfoFactory
	filter       NamespaceFilter
	disturbances disturbances

	mu      sync.Mutex
	history history
}

// Start begins to record what is sent to the API server of upstream. Only the server's address and its
// certificate authority are taken from upstream. token is the client's at the API server; the client gets another one,
// [Proxy.Token]. Stop it with [Proxy.Stop].
//
// The zero filter shows everything.
func Start(upstream *rest.Config, token string, filter NamespaceFilter) (*Proxy, error) {
	target, err := url.Parse(upstream.Host)
	if err != nil {
		return nil, fmt.Errorf("parse API server address: %w", err)
	}
	pair, ca, err := newCertificate()
	if err != nil {
		return nil, err
	}
	transport, err := transportTo(upstream)
	if err != nil {
		return nil, err
	}
	listener, err := loopback.Listen()
	if err != nil {
		return nil, fmt.Errorf("listen for the manager: %w", err)
	}
	r := &Proxy{listener: listener, ca: ca, token: rand.Text(), filter: filter, resolver: &request.RequestInfoFactory{
		APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api"),
	}}
	// What a client sends decides how much there would be to say, and Ginkgo keeps all that is printed.
	silent := log.New(io.Discard, "", 0)
	proxy := &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.Out.Host = target.Host
			switch p.In.Header.Get("Authorization") {
			case "":
			case "Bearer " + r.token:
				p.Out.Header.Set("Authorization", "Bearer "+token)
			default: // others that the API server knows are not the client's to use
				p.Out.Header.Set("Authorization", "Bearer unknown")
			}
		},
		Transport:      transport,
		FlushInterval:  -1, // watches are streams
		ModifyResponse: r.answered,
		ErrorHandler:   r.unanswered,
		ErrorLog:       silent,
	}
	// A connection of HTTP/2 has many requests, and keeps each whose answer is not read, also of those that are refused.
	oneByOne := new(http.Protocols)
	oneByOne.SetHTTP1(true)
	r.server = &http.Server{
		Protocols:         oneByOne,
		Handler:           r.recording(proxy),
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ConnState:         r.disturbances.track,
		ErrorLog:          silent,
	}
	go func() { _ = r.server.ServeTLS(refusingListener{listener, &r.disturbances}, "", "") }()
	return r, nil
}

// answered records the API server's answer, before the client hears of it.
func (p *Proxy) answered(resp *http.Response) error {
	record, ok := resp.Request.Context().Value(recordKey{}).(*Request)
	if !ok {
		return nil
	}
	record.Status = resp.StatusCode
	if resp.StatusCode >= http.StatusBadRequest {
		record.Message = refusal(resp)
	}
	record.note(resp)
	record.Disturbed = record.Disturbed && resp.StatusCode == http.StatusConflict
	p.add(*record)
	p.disturbances.after(*record)
	return nil
}

// unanswered is called when the API server, or a client that reads, went away before there was an answer. A write is recorded: it may
// have been done.
func (p *Proxy) unanswered(w http.ResponseWriter, req *http.Request, _ error) {
	outage := p.disturbances.now()
	record, ok := req.Context().Value(recordKey{}).(*Request)
	switch {
	case ok && outage.concerns(*record):
		p.refuse(w, *record, outage)
		return
	case ok && record.Mutating():
		record.Status = http.StatusBadGateway
		p.add(*record)
	}
	w.WriteHeader(http.StatusBadGateway)
}

// refuse answers, or does not answer, a request that fell into an outage.
func (p *Proxy) refuse(w http.ResponseWriter, record Request, outage Outage) {
	record.Disturbed = true
	answer := outage.answer()
	if answer != nil {
		record.Status = int(answer.ErrStatus.Code)
	}
	p.add(record)
	if answer == nil {
		panic(http.ErrAbortHandler)
	}
	refuse(w, answer)
}

func transportTo(upstream *rest.Config) (http.RoundTripper, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(upstream.CAData) {
		return nil, fmt.Errorf("no certificate authority for %s", upstream.Host)
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	t.Proxy = nil
	return t, nil
}

// URL is where clients connect to.
func (p *Proxy) URL() string { return "https://" + p.Address() }

// Address is the host and port of [Proxy.URL].
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Token is what the client has to send. The proxy replaces it by the token that the API server knows, so that a client
// that gives it away gives away nothing that opens the API server itself.
func (p *Proxy) Token() string { return p.token }

// CA is the certificate that clients have to trust, as PEM.
func (p *Proxy) CA() []byte { return p.ca }

// Since gives the requests from index on, in order, as far as they are remembered: of a client that
// floods the API server, the earliest are forgotten first: of writes, of failures and of reads, each by themselves.
func (p *Proxy) Since(index int) []Request {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.history.since(index)
}

// Count is how many requests there were, the forgotten ones included. It is the index of the next one.
func (p *Proxy) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.history.count
}

// Forgot says whether there were so many writes, or failures, that some from index on are not remembered.
func (p *Proxy) Forgot(index int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return max(p.history.writes.from, p.history.failures.from) > index
}

// Tallies are how often each kind of request was sent, the forgotten ones included.
func (p *Proxy) Tallies() []Tally {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.history.all()
}

// Stop closes the listener and every connection.
func (p *Proxy) Stop() error {
	return p.server.Close()
}

// recordKey is the context key under which a request's record travels to its answer.
type recordKey struct{}

func (p *Proxy) recording(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		record, forbidden := p.describe(req)
		if forbidden != nil {
			record.Status, record.Message = http.StatusForbidden, short(forbidden.ErrStatus.Message)
			p.add(record)
			refuse(w, forbidden)
			return
		}
		ctx := req.Context()
		if record.Mutating() { // whoever hangs up before the answer has written all the same
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), writeLimit)
			defer cancel()
			req.Header.Del("Accept-Encoding") // its answer is read here
		}
		ctx, end, outage := p.disturbances.begin(ctx, record)
		defer end()
		if outage != NoOutage {
			p.refuse(w, record, outage)
			return
		}
		if err := p.filter.narrow(req.URL, record); err != nil {
			p.refuse(w, record, Unavailable) // unfiltered, it would show objects of other checks; clients try again
			return
		}
		record.Disturbed = p.disturbances.before(ctx, record)
		next.ServeHTTP(w, req.WithContext(context.WithValue(ctx, recordKey{}, &record)))
	})
}

// writeLimit is how long a write may wait for its answer: longer than an API server takes, which gives up after a minute
// (https://github.com/kubernetes/apiserver/blob/master/pkg/server/config.go, RequestTimeout).
const writeLimit = 90 * time.Second

// textLimit is how much of a refusal, or of a path that is no resource, is remembered. Both can quote
// what the client sent.
const textLimit = 1 << 10

// refusal reads the message of a refused request. The client may have asked for another encoding than
// the course knows; its message is then left out.
func refusal(resp *http.Response) string {
	body := peek(resp)
	obj, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil)
	if status, ok := obj.(*metav1.Status); err == nil && ok {
		return short(status.Message)
	}
	return ""
}

// short is a copy: a part of a string keeps all of it in memory.
func short(text string) string {
	if len(text) <= textLimit {
		return strings.Clone(text)
	}
	const head = textLimit * 2 / 3 // the reason of a refusal stands at its end
	return strings.ToValidUTF8(text[:head], "") + "…" + strings.ToValidUTF8(text[len(text)-(textLimit-head):], "")
}

// describe says what is asked, and why it is forbidden, if it is.
func (p *Proxy) describe(req *http.Request) (Request, *apierrors.StatusError) {
	info, err := p.resolver.NewRequestInfo(req)
	asked := record(req, info, err)
	if err == nil && p.filter.hides(info.Namespace) {
		why := errors.New("this namespace belongs to a check that runs at the same time")
		return asked, apierrors.NewForbidden(schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}, info.Name, why)
	}
	return asked, nil
}

func record(req *http.Request, info *request.RequestInfo, err error) Request {
	record := Request{Time: time.Now(), Verb: short(strings.ToLower(req.Method)), Resource: short(req.URL.Path)}
	if err != nil || !info.IsResourceRequest {
		return record
	}
	record.Verb, record.Group, record.Resource, record.Subresource = info.Verb, info.APIGroup, info.Resource, info.Subresource
	record.Namespace, record.Name = info.Namespace, info.Name
	record.DryRun = isDryRun(info, req.URL.Query()["dryRun"])
	return record
}

// isDryRun says whether the values of the parameter of that name ask for no change
// (https://kubernetes.io/docs/reference/using-api/api-concepts/#dry-run). A deletion may say in its body that it does not mean its
// parameters, and a subresource may know none.
func isDryRun(info *request.RequestInfo, values []string) bool {
	heeded := slices.Contains([]string{"create", "update", "patch"}, info.Verb) && (info.Subresource == "" || info.Subresource == "status")
	return heeded && len(values) > 0 && !slices.ContainsFunc(values, func(value string) bool { return value != metav1.DryRunAll })
}

func (p *Proxy) add(record Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.history.add(record)
}
