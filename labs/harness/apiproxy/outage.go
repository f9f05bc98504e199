package apiproxy

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Outage is a way in which an API server is not there for its client.
type Outage int

const (
	// NoOutage is no outage: the API server is there.
	NoOutage Outage = iota
	// Unavailable is an API server that answers every request with 503. Running watches break off.
	Unavailable
	// Unreachable is one that closes every connection, and each new one at once. A write that was under
	// way may have been done; nobody can tell.
	Unreachable
	// ReadOnly is one whose store takes no writes: they are answered with 500. Reads and watches go on, so no informer lists
	// again afterwards.
	ReadOnly
	// NoDeployments is one that takes no writes of Deployments, as when an admission webhook for them has failed. They are
	// answered with 500, and all else works.
	NoDeployments
	// NoMemcacheds is the same for Memcacheds and their status.
	NoMemcacheds
)

// String is the outage in a person's words.
func (o Outage) String() string {
	return [...]string{"there", "unavailable (503)", "unreachable", "without a store to write to (500)", "refusing all writes of Deployments (500)", "refusing all writes of Memcacheds (500)"}[o]
}

// concerns says whether the outage keeps a request from its answer.
func (o Outage) concerns(r Request) bool {
	switch o {
	case NoOutage:
		return false
	case ReadOnly:
		return r.Mutating()
	case NoDeployments:
		return r.Mutating() && r.Group == "apps" && r.Resource == "deployments"
	case NoMemcacheds:
		return r.Mutating() && r.Resource == "memcacheds"
	default:
		return true
	}
}

// answer is what the API server still says, nil when it says nothing.
func (o Outage) answer() *apierrors.StatusError {
	switch o {
	case Unavailable:
		return apierrors.NewServiceUnavailable("the server is currently unable to handle the request")
	case ReadOnly:
		return apierrors.NewInternalError(errors.New("etcdserver: leader changed"))
	case NoDeployments, NoMemcacheds:
		return apierrors.NewInternalError(errors.New("failed calling webhook: context deadline exceeded"))
	default:
		return nil
	}
}

// Disturbance stands in the way of single requests. Both functions may be nil, and are called from many
// goroutines at once.
type Disturbance struct {
	// Before is called ahead of each request, which waits for it. True says that it did something which
	// the API server may answer with a conflict; such an answer is marked as Disturbed.
	Before func(context.Context, Request) bool
	// After is called when the API server has answered, and the client has not heard of it yet.
	After func(Request)
}

// Disturb puts d in the way of all requests from now on. The zero Disturbance ends it.
func (p *Proxy) Disturb(d Disturbance) {
	p.disturbances.mu.Lock()
	defer p.disturbances.mu.Unlock()
	p.disturbances.disturbance = d
}

// Outage keeps the API server from the client for a while, beginning now. It does not wait for the end.
// NoOutage ends an outage early.
func (p *Proxy) Outage(kind Outage, lasts time.Duration) {
	breakOff := p.disturbances.begins(kind, lasts)
	for _, end := range breakOff {
		end()
	}
}

// disturbances is what stands between the client and the API server.
type disturbances struct {
	mu          sync.Mutex
	disturbance Disturbance
	outage      Outage
	until       time.Time

	watches     map[*context.CancelFunc]struct{}
	connections map[net.Conn]struct{}
}

// now is the outage of this moment.
func (w *disturbances) now() Outage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.current()
}

// current is now for those who hold the lock.
func (w *disturbances) current() Outage {
	if time.Now().After(w.until) {
		w.outage = NoOutage
	}
	return w.outage
}

// begins notes the outage and returns what breaks off now.
func (w *disturbances) begins(kind Outage, lasts time.Duration) []func() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.outage, w.until = kind, time.Now().Add(lasts)
	var breakOff []func()
	if kind == Unavailable || kind == Unreachable {
		for end := range w.watches {
			breakOff = append(breakOff, *end)
		}
	}
	if kind == Unreachable {
		for conn := range w.connections {
			breakOff = append(breakOff, func() { _ = conn.Close() })
		}
	}
	return breakOff
}

// begin makes the context of a request, which ends early if it is a watch that breaks off. It returns the
// outage that keeps the request from its answer, if there is one already.
func (w *disturbances) begin(ctx context.Context, record Request) (_ context.Context, end func(), _ Outage) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if outage := w.current(); outage.concerns(record) {
		return ctx, func() {}, outage
	}
	if record.Verb != "watch" {
		return ctx, func() {}, NoOutage
	}
	ctx, cancel := context.WithCancel(ctx)
	if w.watches == nil {
		w.watches = map[*context.CancelFunc]struct{}{}
	}
	w.watches[&cancel] = struct{}{}
	return ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.watches, &cancel)
		cancel()
	}, NoOutage
}

func (w *disturbances) before(ctx context.Context, record Request) bool {
	w.mu.Lock()
	before := w.disturbance.Before
	w.mu.Unlock()
	return before != nil && before(ctx, record)
}

func (w *disturbances) after(record Request) {
	w.mu.Lock()
	after := w.disturbance.After
	w.mu.Unlock()
	if after != nil {
		after(record)
	}
}

// track is the server's ConnState: it knows the open connections.
func (w *disturbances) track(conn net.Conn, state http.ConnState) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.connections == nil {
		w.connections = map[net.Conn]struct{}{}
	}
	switch state {
	case http.StateNew:
		w.connections[conn] = struct{}{}
	case http.StateClosed, http.StateHijacked:
		delete(w.connections, conn)
	}
}

// refusingListener resets new connections while the API server is [Unreachable]. It keeps the port, which another program
// might take.
type refusingListener struct {
	net.Listener
	disturbances *disturbances
}

// Accept waits for a connection that may stay.
func (l refusingListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.disturbances.now() != Unreachable {
			return conn, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0) // a reset, not a polite end
		}
		_ = conn.Close()
	}
}

// refuse sends an error as the API server does.
func refuse(w http.ResponseWriter, err *apierrors.StatusError) {
	status := err.Status()
	status.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Status"))
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(&status)
}
