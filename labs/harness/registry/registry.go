// Package registry is a registry of caches that is no part of any cluster. An operator gives each of its Memcacheds an entry
// there, by plain HTTP:
//
//	PUT    /caches/{uid}    {"namespace": …, "name": …, "size": …}
//	GET    /caches/{uid}    the entry, or 404
//	DELETE /caches/{uid}    404 when there is none
//
// It remembers who asked for what, and a check may have it be slow, be away, or say no for a while.
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

// Request is one that the registry was sent.
type Request struct {
	Method, UID string
	Entry       Entry // of a PUT
	Status      int   // of the answer, whether or not the other side has waited for it; 0 as long as there is none, -1 for none at all
	Began       time.Time
	Ended       time.Time // when it was answered, or when the other side gave up; zero as long as it is open
}

// Behaviour is what the registry does with requests in place of what is right.
type Behaviour struct {
	// Only is the one method that it is about, "" is all.
	Only string
	// Statuses are the answers to the requests for one uid, one after the other and without any effect. The last one stays. With
	// none, the answer is the right one. -1 is no answer: the connection ends.
	Statuses []int
	// Delay comes before the effect and the answer.
	Delay time.Duration
	// Meanwhile is called before the effect, which waits for it; nil is nothing. It may be called by several requests at a time.
	Meanwhile func(context.Context, Request)
}

// breakOff stands for a connection that ends without an answer, among statuses.
const breakOff = -1

// Registry is one that listens until it is closed. All of its methods may be called at any time.
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

// Start makes a registry that listens at an address of loopback, such as "127.0.0.1:0" for any port that is free. tell is told
// each request that is answered, one at a time; nil is nobody.
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

// URL is what an operator is told.
func (r *Registry) URL() string { return r.url }

// Close ends it.
func (r *Registry) Close() error { return r.server.Close() }

// Entries are all of them, by uid.
func (r *Registry) Entries() map[string]Entry {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.entries)
}

// Edit changes an entry as somebody else would; nil removes it.
func (r *Registry) Edit(uid string, entry *Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if delete(r.entries, uid); entry != nil {
		r.entries[uid] = *entry
	}
}

// Behave has the registry do something else with the requests for a uid, from now on; "" is each uid that has no behaviour of its own.
// The zero value is what is right.
func (r *Registry) Behave(uid string, b Behaviour) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviours[uid] = b
	r.disturbed = map[string]int{}
}

// Requests are those for a uid, in order of their arrival.
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

// serve answers a request. What was asked is done all the same when the other side hangs up.
func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	q := &Request{Began: time.Now(), Method: req.Method, UID: req.PathValue("uid")}
	if q.Method == http.MethodPut {
		if err := json.NewDecoder(req.Body).Decode(&q.Entry); err != nil {
			http.Error(w, "the body is no entry: "+err.Error(), http.StatusBadRequest)
			return
		}
	}
	_, _ = io.Copy(io.Discard, req.Body) // only then the server notices that the other side hangs up
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

// receive remembers a request, and returns what is to be done with it.
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

// answer does what is asked, unless the behaviour has another answer, and tells the other side.
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

// apply does what is asked, and returns the answer.
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
