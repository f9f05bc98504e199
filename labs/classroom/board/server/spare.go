package server

import (
	"net"
	"net/http"
	"sync"
)

// spareConnections are those on which no request has begun. Browsers and Go's client open some ahead, and
// [http.Server.Shutdown] waits for them up to five seconds, in case a request is on its way.
type spareConnections struct {
	mu     sync.Mutex
	open   map[net.Conn]struct{}
	closed bool
}

func newSpareConnections() *spareConnections {
	return &spareConnections{open: map[net.Conn]struct{}{}}
}

// follow is for [http.Server.ConnState].
func (s *spareConnections) follow(c net.Conn, state http.ConnState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(s.open, c)
	case s.closed:
		_ = c.Close()
	default:
		s.open[c] = struct{}{}
	}
}

func (s *spareConnections) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for c := range s.open {
		_ = c.Close()
	}
}
