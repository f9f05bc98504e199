package clusters

import (
	"context"
	"crypto/rand"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// serveInMemory plays an API server on pipes and returns a kubeconfig for it. A fake clock stands still while
// somebody waits for a socket; it goes on while they wait for a pipe.
func serveInMemory(t *testing.T, handler http.Handler) string {
	t.Helper()
	l := &pipes{calls: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	// The clients of Kubernetes use the default transport where a kubeconfig asks for nothing special.
	scheme := "memory-" + strings.ToLower(rand.Text())
	http.DefaultTransport.(*http.Transport).RegisterProtocol(scheme, overPipes{&http.Transport{DialContext: l.dial, DisableKeepAlives: true}})
	return writeKubeconfig(t, scheme+"://localhost")
}

// overPipes takes the address of a server in memory for one of HTTP.
type overPipes struct{ http *http.Transport }

func (o overPipes) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme = "http"
	return o.http.RoundTrip(r)
}

// pipes is a listener in memory.
type pipes struct {
	calls  chan net.Conn
	once   sync.Once
	closed chan struct{}
}

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.calls <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.calls:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "unix"} }
