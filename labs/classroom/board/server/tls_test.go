package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/board/certificate"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

// elsewhere is a listener whose callers are other machines.
type elsewhere struct{ net.Listener }

func (l elsewhere) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return calling{c, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 9), Port: 1}}, err
}

// Whoever listens in a room reads nothing but modules, for which go.sum vouches.
func TestOtherMachinesHaveToEncrypt(t *testing.T) {
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pair, key, err := certificate.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	public := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "got "+r.URL.Path) })
	srv, err := server.New(t.Context(), server.Config{
		Store: s, Course: boardtest.Course(t), Rules: room.DefaultRules, Certificate: pair, Checked: "/modules/",
		Public: map[string]http.Handler{"/modules/": public, "/course": public},
	})
	if err != nil {
		t.Fatal(err)
	}
	here, there := listen(t), elsewhere{listen(t)}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- srv.Serve(ctx, here, there) }()
	t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	config := roomclient.Config{Key: key}
	clients := map[string]*http.Client{"http": {Transport: &http.Transport{}, CheckRedirect: config.Client().CheckRedirect}, "https": config.Client()}
	for _, tc := range []struct {
		from         net.Listener
		scheme, path string
		code         int
	}{
		{here, "http", "/course", http.StatusOK},
		{here, "http", "/", http.StatusUnauthorized}, // the page to log in
		{here, "https", "/course", http.StatusOK},
		{there, "http", "/modules/x", http.StatusOK},
		{there, "http", "/course", http.StatusUpgradeRequired},
		{there, "http", "/", http.StatusUpgradeRequired},
		{there, "http", "/modules", http.StatusUpgradeRequired},
		{there, "https", "/course", http.StatusOK},
		{there, "https", "/modules/x", http.StatusOK},
		{there, "https", "/", http.StatusUnauthorized},
	} {
		url := tc.scheme + "://" + tc.from.Addr().String() + tc.path
		resp, err := clients[tc.scheme].Get(url)
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.code {
			t.Errorf("%s from %s: %s, want %d", url, tc.from.Addr(), resp.Status, tc.code)
		}
	}
	instructor, err := s.AddInstructorToken(t.Context(), "instructor", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for scheme, secure := range map[string]bool{"http": false, "https": true} {
		resp, err := clients[scheme].Post(scheme+"://"+here.Addr().String()+"/login", "application/x-www-form-urlencoded",
			strings.NewReader("token="+instructor.Reveal()))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if cookies := resp.Cookies(); len(cookies) != 1 || cookies[0].Secure != secure {
			t.Errorf("a browser that came by %s gets %v", scheme, cookies)
		}
	}
	for _, client := range clients {
		client.CloseIdleConnections()
	}
}

// Two bytes of a request for TLS, and then silence, hold nobody else up.
func TestASlowHandshakeHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		board, dial, stop := serveInMemory(t)
		defer stop()
		slow, err := dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer slow.Close()
		if _, err := slow.Write([]byte{0x16, 0x03}); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		if got := ask(t, board, request{path: "/"}); got.code != http.StatusUnauthorized || time.Since(begun) > 0 {
			t.Errorf("another request: %d after %s", got.code, time.Since(begun))
		}
		if _, err := slow.Read(make([]byte, 1)); err == nil || time.Since(begun) > time.Minute {
			t.Errorf("the server gives the handshake up after %s: %v", time.Since(begun), err)
		}
	})
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}
