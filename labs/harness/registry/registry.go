// Package registry is a registry of caches that is no part of any cluster. An operator gives each of its Memcacheds an entry
// there, by plain HTTP:
//
//	PUT    /caches/{uid}    {"namespace": …, "name": …, "size": …}
//	GET    /caches/{uid}    the entry, or 404
//	DELETE /caches/{uid}    404 when there is none
//
// It remembers who asked for what, and a check may have it be slow, be away, or say no for a while. The program that asks is
// not trusted: what it can make the registry keep is bounded.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
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
	Status      int   // of the answer, whether or not the other side has waited for it; 0 as long as there is none, or [BreakOff]
	Began       time.Time
	Ended       time.Time // when it was answered, or when the other side gave up; zero as long as it is open
}

// Behaviour is what the registry does with requests in place of what is right.
type Behaviour struct {
	// Only is the one method that it is about, "" is all.
	Only string
	// Statuses are the answers to the requests for one uid, one after the other and without any effect. The last one stays. With
	// none, the answer is the right one. [BreakOff] is a status, too.
	Statuses []int
	// Delay comes before the effect and the answer.
	Delay time.Duration
	// Meanwhile is called before the effect, which waits for it; nil is nothing. It may be called by several requests at a time.
	Meanwhile func(context.Context, Request)
}

// BreakOff stands for a connection that ends without an answer, among statuses.
const BreakOff = -1

// Registry is one that listens until it is closed. All of its methods may be called at any time.
type Registry struct {
	server   *http.Server
	listener net.Listener
	tell     func(Request)

	mu         sync.Mutex
	unanswered map[*Request]bool
	entries    map[string]Entry
	record     []Request
	behaviours map[string]Behaviour
	disturbed  map[string]int // requests for each uid since the last change of behaviours
}

// uid is what may identify an entry.
var uid = regexp.MustCompile(`^[0-9A-Za-z-]{1,64}$`)

// Start makes a registry that listens at an address of loopback, such as "127.0.0.1:0" for any port that is free. tell is told
// each request that is answered, one at a time. With nil, they are remembered for [Registry.Requests].
func Start(address string, tell func(Request)) (*Registry, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("start the registry: %w", err)
	}
	r := &Registry{
		listener: l, tell: tell,
		unanswered: map[*Request]bool{}, entries: map[string]Entry{}, behaviours: map[string]Behaviour{},
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/caches/{uid}", r.serve)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, MaxHeaderBytes: 16 << 10, ErrorLog: log.New(io.Discard, "", 0)}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

// Address is where it listens, as host:port.
func (r *Registry) Address() string { return r.listener.Addr().String() }

// URL is what an operator is told.
func (r *Registry) URL() string { return "http://" + r.Address() }

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
	if entry == nil {
		delete(r.entries, uid)
		return
	}
	r.entries[uid] = *entry
}

// Everybody stands for each uid that has no behaviour of its own, in [Registry.Behave].
const Everybody = ""

// Behave has the registry do something else with the requests for a uid, from now on. The zero value is what is right.
func (r *Registry) Behave(uid string, b Behaviour) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.behaviours[uid] = b
	r.disturbed = map[string]int{}
}

// Requests are those for a uid: in order of the answers, and then those that have none yet.
func (r *Registry) Requests(uid string) []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := slices.Clone(r.record)
	for q := range r.unanswered {
		all = append(all, *q)
	}
	return slices.DeleteFunc(all, func(q Request) bool { return q.UID != uid })
}

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	q := Request{Began: time.Now(), Method: req.Method, UID: req.PathValue("uid")}
	if err := q.read(req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b := r.receive(&q)
	if b.Meanwhile != nil {
		b.Meanwhile(context.WithoutCancel(req.Context()), q) // what was asked is done all the same, by whoever hangs up
	}
	delay := time.NewTimer(b.Delay)
	defer delay.Stop()
	select {
	case <-req.Context().Done(): // what was asked is done all the same
	case <-delay.C:
	}
	status, entry := r.answer(&q, b)
	if status == BreakOff {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if q.Method == http.MethodGet && status == http.StatusOK {
		_ = json.NewEncoder(w).Encode(entry)
	}
}

// read takes what a request says.
func (q *Request) read(req *http.Request) error {
	if !uid.MatchString(q.UID) {
		return errors.New("a uid has letters, digits and dashes only")
	}
	body, err := io.ReadAll(req.Body)
	if err != nil || q.Method != http.MethodPut {
		return err
	}
	if err := json.Unmarshal(body, &q.Entry); err != nil {
		return fmt.Errorf("the body is no entry: %w", err)
	}
	return nil
}

// receive returns what is to be done with a request, which waits for its answer from now on.
func (r *Registry) receive(q *Request) Behaviour {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.unanswered[q] = true
	b, ok := r.behaviours[q.UID]
	if !ok {
		b = r.behaviours[Everybody]
	}
	if b.Only != "" && b.Only != q.Method {
		return Behaviour{}
	}
	return b
}

// answer does what is asked, unless the answer is another one, and remembers it.
func (r *Registry) answer(q *Request, b Behaviour) (status int, entry Entry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.unanswered, q)
	q.Ended, entry = time.Now(), r.entries[q.UID]
	if n := len(b.Statuses); n > 0 {
		q.Status = b.Statuses[min(r.disturbed[q.UID], n-1)]
		r.disturbed[q.UID]++
	} else {
		q.Status = r.apply(*q)
	}
	if r.tell != nil {
		r.tell(*q)
	} else {
		r.record = append(r.record, *q)
	}
	return q.Status, entry
}

// apply does what is asked, and returns the status of the answer.
func (r *Registry) apply(q Request) int {
	_, there := r.entries[q.UID]
	switch {
	case q.Method == http.MethodPut:
		r.entries[q.UID] = q.Entry
		if there {
			return http.StatusOK
		}
		return http.StatusCreated
	case q.Method != http.MethodGet && q.Method != http.MethodDelete:
		return http.StatusMethodNotAllowed
	case !there:
		return http.StatusNotFound
	case q.Method == http.MethodDelete:
		delete(r.entries, q.UID)
		return http.StatusNoContent
	}
	return http.StatusOK
}
