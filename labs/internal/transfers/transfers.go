// Package transfers bounds how much a server sends at once: large files, over one Wi-Fi, to a room of people.
package transfers

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

const (
	// DefaultAll is how many files are sent at once. A Wi-Fi is one medium: more do not get through it sooner,
	// and each takes memory and a share of the disk.
	DefaultAll = 16
	// DefaultEach is how many of them one address gets, so that nobody has to wait for one learner: a Go
	// command asks for ten at once.
	DefaultEach = 4
	// slowest is the rate below which a transfer is ended, in bytes per second, and grace what it has besides: else
	// sixteen learners who have gone home would keep all others waiting.
	slowest, grace = 32 << 10, 30 * time.Second
)

// Transfers bounds what is being sent. It is safe for concurrent use.
type Transfers struct {
	all  chan struct{}
	each int

	mu      sync.Mutex
	clients map[string]*client
}

// client is an address with transfers that are under way or wait.
type client struct {
	slots chan struct{}
	users int // under way or waiting; guarded by Transfers.mu
}

// New allows so many transfers at once, and so many of them to one address; 0 is [DefaultAll] and [DefaultEach].
func New(all, each int) *Transfers {
	if all <= 0 {
		all = DefaultAll
	}
	if each <= 0 {
		each = DefaultEach
	}
	return &Transfers{all: make(chan struct{}, all), each: each, clients: map[string]*client{}}
}

// Begin waits until a transfer may begin; done ends it. The error is that of the request, whose sender has gone.
func (t *Transfers) Begin(w http.ResponseWriter, r *http.Request) (done func(), err error) {
	// The server's limit for reading a request would otherwise end the wait: nothing more is to be read.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	address := r.RemoteAddr
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	c := t.enter(address)
	// Its own turn comes first: who waits for that must not keep others from theirs.
	if err := take(r.Context(), c.slots); err != nil {
		t.leave(address)
		return nil, err
	}
	if err := take(r.Context(), t.all); err != nil {
		<-c.slots
		t.leave(address)
		return nil, err
	}
	return func() {
		<-t.all
		<-c.slots
		t.leave(address)
	}, nil
}

func take(ctx context.Context, slots chan<- struct{}) error {
	select {
	case slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *Transfers) enter(address string) *client {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[address]
	if c == nil {
		c = &client{slots: make(chan struct{}, t.each)}
		t.clients[address] = c
	}
	c.users++
	return c
}

func (t *Transfers) leave(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.clients[address]
	if c.users--; c.users == 0 {
		delete(t.clients, address)
	}
}

// Allow gives the answer as much time as a transfer of that size in bytes may take, whatever the server's limit for
// pages is. Servers without deadlines, as in tests, have none.
func Allow(w http.ResponseWriter, size int64) {
	limit := grace + time.Duration(size/slowest)*time.Second
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit))
}
