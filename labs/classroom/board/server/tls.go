package server

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// listener is one at whose port connections may be TLS, or plain: Go commands get modules there, for which their go.sum
// vouches. It lets no address have more connections than its share.
type listener struct {
	net.Listener
	config *tls.Config
	conns  *connLimiter
}

// sendQueue is what the kernel keeps for a client that does not read, in bytes, of which Linux takes twice as many. It would
// keep megabytes for each, and that memory is the machine's.
const sendQueue = 256 << 10

func (s *Server) listener(l net.Listener) net.Listener {
	return &listener{l, &tls.Config{
		Certificates: []tls.Certificate{s.Certificate}, MinVersion: tls.VersionTLS13, NextProtos: []string{"http/1.1"},
	}, s.conns}
}

func (l *listener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		p, ok := l.conns.acquire(raw.RemoteAddr())
		if !ok {
			_ = raw.Close()
			continue
		}
		if tcp, ok := raw.(interface{ SetWriteBuffer(bytes int) error }); ok {
			_ = tcp.SetWriteBuffer(sendQueue)
		}
		// Before the first request net/http sets none, and TLS answers messages of its own by itself.
		_ = raw.SetWriteDeadline(time.Now().Add(writeTimeout))
		return &conn{Conn: raw, config: l.config, slot: p, release: sync.OnceFunc(func() { l.conns.release(p) })}, nil
	}
}

// conn finds out with its first byte what it is. Nobody may write before somebody has read, as in HTTP/1.1.
type conn struct {
	net.Conn
	config  *tls.Config
	slot    slot
	release func()                   // gives the slot up
	asked   bool                     // whether there was a first byte
	tls     atomic.Pointer[tls.Conn] // over Conn; nil where that is plain
}

// goodbyeTimeout is for the last record of a connection, which tells its reader that nothing is missing. It is short, because
// a server that ends says goodbye to one after the other.
const goodbyeTimeout = 20 * time.Millisecond

// handshakeRecord is the first byte of TLS: the type of a record. No request of HTTP begins with it.
const handshakeRecord = 0x16

func (c *conn) Read(p []byte) (int, error) {
	if t := c.tls.Load(); t != nil {
		return t.Read(p)
	}
	if c.asked || len(p) == 0 {
		return c.Conn.Read(p)
	}
	n, err := c.Conn.Read(p[:1])
	c.asked = n > 0
	if n == 0 || p[0] != handshakeRecord {
		return n, err
	}
	t := tls.Server(&begun{c.Conn, []byte{handshakeRecord}}, c.config)
	c.tls.Store(t)
	return t.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if t := c.tls.Load(); t != nil {
		return t.Write(p)
	}
	return c.Conn.Write(p)
}

func (c *conn) Close() error {
	defer c.release()
	if t := c.tls.Load(); t != nil {
		// Closing says goodbye, and waits for whoever is writing. Nobody who does not read may hold that up.
		defer time.AfterFunc(goodbyeTimeout, func() { _ = c.Conn.Close() }).Stop()
		return t.Close()
	}
	return c.Conn.Close()
}

// begun is a connection of which the beginning has been read.
type begun struct {
	net.Conn
	first []byte
}

func (b *begun) Read(p []byte) (int, error) {
	if len(b.first) == 0 {
		return b.Conn.Read(p)
	}
	n := copy(p, b.first)
	b.first = b.first[n:]
	return n, nil
}

type connKey struct{}

// withConn is for [http.Server.ConnContext].
func withConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection of a request, nil in tests that have none.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}

// encrypted says whether nobody on the way can read the request and its answer.
func encrypted(r *http.Request) bool {
	c := connOf(r)
	return c != nil && c.tls.Load() != nil
}

// mayBePlain says whether a request need not be encrypted: one of this machine to itself, and one for what its reader
// checks.
func (s *Server) mayBePlain(r *http.Request) bool {
	if s.Checked != "" && strings.HasPrefix(r.URL.Path, s.Checked) {
		return true
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	return err == nil && from.Addr().Unmap().IsLoopback()
}
