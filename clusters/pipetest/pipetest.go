// Package pipetest has servers listen on pipes, for tests with a fake clock. The clock of [testing/synctest] stands
// still while somebody waits for a socket; it goes on while everybody waits for a pipe.
package pipetest

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"sync"
)

// Listener is in memory.
type Listener struct {
	// URL is its address for HTTP clients that use [http.DefaultTransport]. Those of Kubernetes do where a kubeconfig
	// asks for nothing special.
	URL string

	calls  chan net.Conn
	close  sync.Once
	closed chan struct{}
}

// Listen makes one. It belongs to the bubble of the test that makes it.
func Listen() *Listener {
	scheme := "pipe-" + strings.ToLower(rand.Text())
	l := &Listener{URL: scheme + "://localhost", calls: make(chan net.Conn), closed: make(chan struct{})}
	// Without connections that stay open: a bubble ends when all that it has started has ended.
	http.DefaultTransport.(*http.Transport).RegisterProtocol(scheme, transport{&http.Transport{DialContext: l.dial, DisableKeepAlives: true}})
	return l
}

// transport takes the address of a listener for one of HTTP.
type transport struct{ http *http.Transport }

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return t.http.RoundTrip(r)
}

func (l *Listener) dial(ctx context.Context, _, _ string) (net.Conn, error) { return l.Dial(ctx) }

// Dial connects to it.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case l.calls <- local{there}:
		return here, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// local says that it comes from this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// Accept is for a server.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.calls:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close ends it, and no connection.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr is no address that anybody could call.
func (l *Listener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "unix"} }
