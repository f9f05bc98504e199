package server

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters/pipetest"
	"github.com/example/operator-lab/labs/classroom/board/certificate"
)

// bounded is a connection that knows whether writing to it has a limit.
type bounded struct {
	net.Conn
	limit time.Time
}

func (b *bounded) SetWriteDeadline(limit time.Time) error {
	b.limit = limit
	return b.Conn.SetWriteDeadline(limit)
}

type boundedListener struct {
	net.Listener
	accepted *bounded
}

func (l *boundedListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	l.accepted = &bounded{Conn: c}
	return l.accepted, err
}

// A client that does not read what TLS says by itself keeps neither its place nor the server from its end.
func TestWhoDoesNotReadHoldsNothingUp(t *testing.T) {
	pair, _, err := certificate.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pipe := pipetest.Listen()
	defer pipe.Close()
	under := &boundedListener{Listener: pipe}
	l := (&Server{Config: Config{Certificate: pair}, conns: newConnLimiter()}).listener(under)
	accepted := make(chan net.Conn, 1)
	go func() {
		c, err := l.Accept()
		if err != nil {
			t.Error(err)
			close(accepted)
			return
		}
		accepted <- c
		_, _ = c.Read(make([]byte, 1)) // as net/http does, until the connection is closed
	}()
	raw, err := pipe.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	c := <-accepted
	if left := time.Until(under.accepted.limit); left <= 0 || left > writeTimeout {
		t.Errorf("before the first request, writing may take %s", left)
	}
	// A server that is asked for new keys answers by itself, while it reads.
	if _, err := raw.Write(keyUpdate(t, raw)); err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	go func() { defer close(closed); _ = c.Close() }()
	select {
	case <-closed:
	case <-time.After(10 * time.Second):
		t.Error("closing the connection waits for the client")
	}
}

// What the server keeps for a client that asks for much, and reads nothing, has an end.
func TestWhoDoesNotReadTakesLittle(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	client, err := net.Dial("tcp", on.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	accepted, err := (&Server{conns: newConnLimiter()}).listener(on).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	const enough = 1 << 20
	for kept := 0; ; {
		if err := accepted.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		n, err := accepted.Write(make([]byte, 64<<10))
		if kept += n; kept > enough {
			t.Fatal("the kernel keeps more than a megabyte")
		}
		if err != nil {
			return
		}
	}
}

// keyUpdate shakes hands on a connection, and returns the record that asks the server for new keys (RFC 8446, 4.6.3).
func keyUpdate(t *testing.T, raw net.Conn) []byte {
	t.Helper()
	var keys bytes.Buffer
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, SessionTicketsDisabled: true, KeyLogWriter: &keys}) //nolint:gosec // tls_test.go is about that
	if err := c.Handshake(); err != nil {
		t.Fatal(err)
	}
	if suite := c.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		t.Fatalf("the cipher is %s, and this test knows another one", tls.CipherSuiteName(suite))
	}
	_, line, _ := strings.Cut(keys.String(), "CLIENT_TRAFFIC_SECRET_0 ")
	secret, err := hex.DecodeString(strings.Fields(line)[1])
	if err != nil {
		t.Fatal(err)
	}
	expand := func(label string, length int) []byte {
		label = "tls13 " + label
		info := append([]byte{0, byte(length), byte(len(label))}, label...)
		out, err := hkdf.Expand(sha256.New, secret, string(append(info, 0)), length)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	block, err := aes.NewCipher(expand("key", 16))
	if err != nil {
		t.Fatal(err)
	}
	seal, err := cipher.NewGCM(block)
	if err != nil {
		t.Fatal(err)
	}
	message := []byte{24, 0, 0, 1, 1, 22} // key_update, update_requested; a record of the handshake
	header := []byte{23, 3, 3, 0, byte(len(message) + seal.Overhead())}
	return seal.Seal(header[:len(header):len(header)], expand("iv", 12), message, header)
}
