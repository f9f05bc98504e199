// Package registry is a registry of caches outside the cluster. An operator keeps an entry there for each of its Memcacheds, by
// plain HTTP:
//
//	PUT    /caches/{uid}    {"namespace": …, "name": …, "size": …}
//	GET    /caches/{uid}    the entry, or 404
//	DELETE /caches/{uid}    404 when there is none
//
// The registry records all requests. A check may have it answer late, with errors, or not at all: see [Behaviour].
package registry

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"sync"
	"time"
)

// Entry is what the registry knows of a cache.
type Entry struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Size      int32  `json:"size"`
}

// Request is one request to the registry.
type Request struct {
	Method, UID string
	Entry       Entry // of a PUT
	Status      int   // of the answer, even if the client has disconnected; 0 while it is open, -1 if it got no answer on purpose
	Began       time.Time
	Ended       time.Time // when it was answered, or the client disconnected; zero while it is open
}

// Behaviour is what the registry does instead of its contract.
type Behaviour struct {
	// Only is the method that the behaviour applies to, "" for all.
	Only string
	// Statuses are the answers to the requests for one uid, one after the other; the last one repeats. Such a request has no effect.
	// Without statuses, the request has its effect and its answer. -1 closes the connection without an answer.
	Statuses []int
	// Delay is the time until the effect and the answer.
	Delay time.Duration
	// Meanwhile is called before the effect, which waits for it; it may be nil. Several requests may call it at once.
	Meanwhile func(context.Context, Request)
}

// breakOff is the status of a connection that is closed without an answer.
const breakOff = -1

// Registry is a registry that listens until it is closed. Its methods may be called at any time, by several goroutines at once.
type Registry struct {
	server *http.Server
	url    string
	tell   func(Request)

	mu         sync.Mutex
	entries    map[string]Entry
	requests   []*Request // in order of their arrival
	behaviours map[string]Behaviour
	disturbed  map[string]int // requests for each uid since the last change of behaviours
}

// Start makes a registry that listens on an address of loopback, such as "127.0.0.1:0" for any free port. It calls tell for each
// request that is answered, one at a time; tell may be nil.
func Start(address string, tell func(Request)) (*Registry, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}
	r := &Registry{url: "http://" + l.Addr().String(), tell: tell, entries: map[string]Entry{}, behaviours: map[string]Behaviour{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/caches/{uid}", r.serve)
	r.server = &http.Server{Handler: mux} //nolint:gosec // on loopback, for one program
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

// URL is the address for operators.
func (r *Registry) URL() string { return r.url }

// Close closes the listener and all connections.
func (r *Registry) Close() error { return r.server.Close() }

// Entries are all entries, by uid.
func (r *Registry) Entries() map[string]Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.entries)
}

// Edit replaces an entry as another client could; nil removes it.
func (r *Registry) Edit(uid string, entry *Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.entries, uid); entry != nil {
		r.entries[uid] = *entry
	}
}

// Behave sets the behaviour for the requests for a uid; "" stands for every uid without one of its own. The zero Behaviour is the
// contract. Statuses begin again for all uids.
func (r *Registry) Behave(uid string, b Behaviour) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviours[uid] = b
	r.disturbed = map[string]int{}
}

// Requests are the requests for a uid, in the order of their arrival.
func (r *Registry) Requests(uid string) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Request
	for _, q := range r.requests {
		if q.UID == uid {
			all = append(all, *q)
		}
	}
	return all
}

// serve answers a request. A request has its effect even if the client disconnects.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	q := &Request{Began: time.Now(), Method: req.Method, UID: req.PathValue("uid")}
	if q.Method == http.MethodPut {
		if err := json.NewDecoder(req.Body).Decode(&q.Entry); err != nil {
			http.Error(w, "the body is no entry: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	_, _ = io.Copy(io.Discard, req.Body) // until the body is read, the server does not notice that the client disconnects
	b := r.receive(q)
	if b.Meanwhile != nil {
		b.Meanwhile(context.WithoutCancel(req.Context()), *q)
	}
	select {
	case <-req.Context().Done():
	case <-time.After(b.Delay):
	}
	r.answer(w, q, b)
}

// receive records a request, and returns the behaviour for it.
func (r *Registry) receive(q *Request) Behaviour {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, q)
	b, ok := r.behaviours[q.UID]
	if !ok {
		b = r.behaviours[""]
	}
	if b.Only != "" && b.Only != q.Method {
		return Behaviour{}
	}
	return b
}

// answer sends the next status of the behaviour, or else applies the request and sends its answer.
func (r *Registry) answer(w http.ResponseWriter, q *Request, b Behaviour) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var entry *Entry
	if n := len(b.Statuses); n > 0 {
		q.Status = b.Statuses[min(r.disturbed[q.UID], n-1)]
		r.disturbed[q.UID]++
	} else {
		q.Status, entry = r.apply(*q)
	}
	q.Ended = time.Now()
	if r.tell != nil {
		r.tell(*q)
	}
	if q.Status == breakOff {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(q.Status)
	if entry != nil {
		_ = json.NewEncoder(w).Encode(entry)
	}
}

// apply has the effect of a request by the contract, and returns the answer.
func (r *Registry) apply(q Request) (status int, _ *Entry) {
	entry, there := r.entries[q.UID]
	switch {
	case q.Method == http.MethodPut:
		r.entries[q.UID] = q.Entry
		return map[bool]int{true: http.StatusOK, false: http.StatusCreated}[there], nil
	case q.Method != http.MethodGet && q.Method != http.MethodDelete:
		return http.StatusMethodNotAllowed, nil
	case !there:
		return http.StatusNotFound, nil
	case q.Method == http.MethodDelete:
		delete(r.entries, q.UID)
		return http.StatusNoContent, nil
	}
	return http.StatusOK, &entry
}
