package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/clusters/pipetest"
	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/board/certificate"
)

// network is a listener in memory, and machines that call it.
type network struct {
	*pipetest.Listener
	from chan net.Addr
}

func (n network) Accept() (net.Conn, error) {
	c, err := n.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return calling{c, <-n.from}, nil
}

// calling is a connection from an address.
type calling struct {
	net.Conn
	from net.Addr
}

func (c calling) RemoteAddr() net.Addr { return c.from }

// dial calls from an address.
func (n network) dial(ctx context.Context, ip string) (net.Conn, error) {
	c, err := n.Dial(ctx)
	if err == nil {
		n.from <- &net.TCPAddr{IP: net.ParseIP(ip), Port: 1}
	}
	return c, err
}

// client is a machine with that address.
func (n network) client(ip string) *http.Client {
	return &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // tls_test.go is about that
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return n.dial(ctx, ip) },
	}}
}

// hold opens connections and says nothing, or only the beginning of a request or of a handshake. It returns how many the
// server lets wait.
func (n network) hold(t *testing.T, ip string, connections int) (open *atomic.Int64) {
	t.Helper()
	open = &atomic.Int64{}
	for i := range connections {
		c, err := n.dial(t.Context(), ip)
		if err != nil {
			t.Fatal(err)
		}
		open.Add(1)
		go func() {
			defer open.Add(-1)
			defer c.Close()
			_, _ = c.Write([][]byte{{}, {'G'}, {0x16}}[i%3])
			_, _ = c.Read(make([]byte, 1))
		}()
	}
	synctest.Wait()
	return open
}

// serveRoom serves on such a network.
func serveRoom(t *testing.T) (n network, board *boardtest.Board) {
	t.Helper()
	// Both ends of a pipe may be saying goodbye when the server has ended. They give up after a while, and a bubble waits
	// for nobody.
	t.Cleanup(func() { time.Sleep(time.Minute) })
	pair, _, err := certificate.Load(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n = network{pipetest.Listen(), make(chan net.Addr, 1)}
	board, _ = serveOn(t, n, pair)
	board.URL = "https://localhost"
	return n, board
}

// One laptop without a token opens a thousand connections, and ten learners work. The clock stands still while anybody
// can go on, so whoever waits for the laptop is seen to wait.
func TestOneMachineDoesNotCloseTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, board := serveRoom(t)
		const laptop = "10.0.0.66"
		held := n.hold(t, laptop, 1024)
		if open := held.Load(); open != 128 {
			t.Errorf("one address has %d connections, want 64, and as many that are told to come again", open)
		}
		var open int64
		for i := range 300 {
			open += n.hold(t, fmt.Sprintf("2001:db8::%x", i+1), 1).Load()
		}
		if open != 128 {
			t.Errorf("one machine with 300 addresses has %d connections, want as many as with one", open)
		}
		begun := time.Now()
		for i := range 10 {
			token := board.Learner(t, fmt.Sprintf("learner-%d", i))
			got := askBy(t, n.client(fmt.Sprintf("10.0.1.%d", i)), board.URL, post(t, board, token, fmt.Sprintf("run-%d", i)))
			if got.code != http.StatusCreated {
				t.Errorf("learner-%d: %d %s", i, got.code, got.body)
			}
		}
		if waited := time.Since(begun); waited > 0 {
			t.Errorf("ten learners waited for %s", waited)
		}
		time.Sleep(time.Minute)
		if open := held.Load(); open != 0 {
			t.Errorf("%d connections that say nothing are open for ever", open)
		}
		if open := n.hold(t, laptop, 200).Load(); open != 128 {
			t.Errorf("then it gets %d, want as many as before", open)
		}
	})
}

func TestWhoHasManyConnectionsIsToldToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, board := serveRoom(t)
		const address = "10.0.0.66"
		n.hold(t, address, 64)
		got := askBy(t, n.client(address), board.URL, request{path: "/"})
		if got.code != http.StatusServiceUnavailable || got.header.Get("Retry-After") != "1" {
			t.Errorf("the 65th: %d %v", got.code, got.header)
		}
		if got := askBy(t, n.client(address), board.URL, request{path: "/", token: board.Instructor}); got.code != http.StatusOK {
			t.Errorf("the 65th with a token: %d %s", got.code, got.body)
		}
		if got := askBy(t, n.client(address), board.URL, request{path: "/"}); got.code != http.StatusUnauthorized {
			t.Errorf("once the address has shown a token: %d", got.code)
		}
	})
}

// Twenty machines without tokens leave room for those that have shown one.
func TestARoomKeepsPlacesForThoseWithTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, board := serveRoom(t)
		token := board.Learner(t, "Ada")
		const ada = "10.0.1.1"
		if got := askBy(t, n.client(ada), board.URL, post(t, board, token, "run-1")); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.body)
		}
		time.Sleep(time.Second) // its connection has ended then
		var open int64
		for i := range 20 {
			open += n.hold(t, fmt.Sprintf("2001:db8:0:%x::1", i), 32).Load()
			open += n.hold(t, fmt.Sprintf("2001:db8:0:%x::2", i), 32).Load() // of the same network
		}
		if open != 1024 {
			t.Errorf("anonymous addresses have %d connections, want 1024", open)
		}
		if got := askBy(t, n.client(ada), board.URL, post(t, board, token, "run-2")); got.code != http.StatusCreated {
			t.Errorf("with a token: %d %s", got.code, got.body)
		}
	})
}

// Whoever has a token has it vouch for two addresses, and not for a network of them, and these share what one has; the
// instructor's own machine gets in.
func TestATokenVouchesForTwoAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, board := serveRoom(t)
		token := board.Learner(t, "Ada")
		for i := range 5 {
			got := askBy(t, n.client(fmt.Sprintf("10.0.1.%d", i)), board.URL, post(t, board, token, fmt.Sprintf("run-%d", i)))
			if got.code != http.StatusCreated {
				t.Fatalf("%d %s", got.code, got.body)
			}
		}
		time.Sleep(time.Second) // their connections have ended then
		for _, tc := range []struct {
			address string
			want    int64
		}{{"10.0.1.0", 128}, {"10.0.1.2", 128}, {"10.0.1.3", 128}, {"10.0.1.4", 0}} {
			if open := n.hold(t, tc.address, 400).Load(); open != tc.want {
				t.Errorf("%s has %d connections, want %d", tc.address, open, tc.want)
			}
		}
		for i := range 20 {
			n.hold(t, fmt.Sprintf("10.0.2.%d", i), 128)
		}
		if got := askBy(t, n.client("127.0.0.1"), board.URL, request{path: "/", token: board.Instructor}); got.code != http.StatusOK {
			t.Errorf("the instructor's own machine: %d", got.code)
		}
	})
}

// One laptop takes thirty addresses and shows its token from each of them; what it had opened before stays open.
func TestOneTokenWithManyAddressesDoesNotCloseTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, board := serveRoom(t)
		ada, mallory := board.Learner(t, "Ada"), board.Learner(t, "Mallory")
		if got := askBy(t, n.client("10.0.1.1"), board.URL, post(t, board, ada, "run-1")); got.code != http.StatusCreated {
			t.Fatalf("%d %s", got.code, got.body)
		}
		for i := range 30 {
			address := fmt.Sprintf("10.0.3.%d", i)
			askBy(t, n.client(address), board.URL, request{path: "/", token: mallory})
			n.hold(t, address, 400)
		}
		if got := askBy(t, n.client("10.0.1.1"), board.URL, post(t, board, ada, "run-2")); got.code != http.StatusCreated {
			t.Errorf("another learner: %d %s", got.code, got.body)
		}
	})
}

// Learners share a router, or a network of IPv6, with somebody who has no token.
func TestATokenVouchesForNoNeighbour(t *testing.T) {
	for name, tc := range map[string]struct {
		learner, stranger string
		want              int64
	}{
		"behind one router":         {"10.0.1.1", "10.0.1.1", 512},
		"in one network of IPv6":    {"2001:db8::1", "2001:db8::66", 128},
		"in one network, by a zone": {"fe80::1", "fe80::66", 128},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n, board := serveRoom(t)
				for i := range 30 {
					token := board.Learner(t, fmt.Sprintf("learner-%d", i))
					askBy(t, n.client(tc.learner), board.URL, request{path: "/", token: token})
				}
				elsewhere := board.Learner(t, "Ada")
				askBy(t, n.client("10.0.2.2"), board.URL, request{path: "/", token: elsewhere})
				time.Sleep(time.Second) // their connections have ended then
				if open := n.hold(t, tc.stranger, 2048).Load(); open != tc.want {
					t.Errorf("the stranger has %d connections, want %d", open, tc.want)
				}
				if got := askBy(t, n.client("10.0.2.2"), board.URL, post(t, board, elsewhere, "run-1")); got.code != http.StatusCreated {
					t.Errorf("a learner elsewhere: %d %s", got.code, got.body)
				}
			})
		})
	}
}
