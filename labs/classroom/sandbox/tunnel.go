package sandbox

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// The first byte on a connection to the socket says what it is for.
const (
	// roleControl is the first connection: orders go in, and what became of them comes out. Its end is the end of the
	// other side, and of everything that the other side has started.
	roleControl = 'c'
	// roleOutput is what the program prints.
	roleOutput = 'o'
	// roleReach is a connection to an address that the program may reach. A byte with its place in the list follows.
	roleReach = 'r'
	// roleServe waits for a connection to the address that the program listens on.
	roleServe = 's'
)

// terminate is the byte on the control connection, behind the orders, that asks the program to end.
const terminate = 'T'

const (
	// dialLimit bounds a connection on one machine, and the wait for its first byte.
	dialLimit = 5 * time.Second
	// reachLimit is how many connections a program may have to the addresses that it reaches.
	reachLimit = 256
	// spareLimit is how many connections wait to be used for what a program serves.
	spareLimit = 4
)

// caller opens a connection to the other side, which says what it is for.
type caller func(role ...byte) (net.Conn, error)

// overSocket calls on a socket.
func overSocket(socket string) caller {
	return calling(func() (net.Conn, error) { return net.DialTimeout("unix", socket, dialLimit) })
}

func calling(dial func() (net.Conn, error)) caller {
	return func(role ...byte) (net.Conn, error) {
		conn, err := dial()
		if err != nil {
			return nil, err
		}
		if _, err := conn.Write(role); err != nil {
			return nil, errors.Join(err, conn.Close())
		}
		return conn, nil
	}
}

// closeWrite says that nothing more comes. A connection of a session has only one way to say so, after which it can be read.
func closeWrite(conn net.Conn) error {
	if c, ok := conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return conn.Close()
}

// join copies both ways until one side ends, and ends both.
func join(a, b net.Conn) {
	done := make(chan struct{}, 2)
	for _, pair := range [2][2]net.Conn{{a, b}, {b, a}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
	a.Close()
	b.Close()
	<-done
}

// mux is the end on this machine. The program in the container may call, too: it gets no more
// than what it may have anyway.
type mux struct {
	reaches []string
	control chan net.Conn // gets the first one, and no other
	output  chan net.Conn // likewise
	first   [2]sync.Once
	spares  chan net.Conn
	places  chan struct{} // one for each connection to what is reached
}

func newMux(reaches []string) *mux {
	return &mux{
		reaches: reaches, control: make(chan net.Conn, 1), output: make(chan net.Conn, 1),
		spares: make(chan net.Conn, spareLimit), places: make(chan struct{}, reachLimit),
	}
}

// answer takes calls until there are no more.
func (m *mux) answer(accept func() (net.Conn, error)) {
	each(accept, func(conn net.Conn) {
		select {
		case m.places <- struct{}{}:
			defer func() { <-m.places }()
			m.connect(conn)
		default:
			conn.Close()
		}
	})
}

// each handles all connections, until there are no more. That there is no room for another one passes, when others have given theirs
// back: a node has so many files for each user.
func each(accept func() (net.Conn, error), handle func(net.Conn)) {
	for {
		conn, err := accept()
		switch {
		case err == nil:
			go handle(conn)
		case isWant(err):
			time.Sleep(takePeriod)
		default:
			return
		}
	}
}

// isWant says whether there was no room for another file or connection.
func isWant(err error) bool {
	return slices.ContainsFunc([]error{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}, func(want error) bool { return errors.Is(err, want) })
}

// connect does what the first byte says. Of control and output there is one each, and both are called for before the
// program is there.
func (m *mux) connect(conn net.Conn) {
	role := make([]byte, 1)
	_ = conn.SetReadDeadline(time.Now().Add(dialLimit))
	if _, err := io.ReadFull(conn, role); err != nil {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	switch role[0] {
	case roleReach:
		m.reach(conn)
	case roleServe:
		select {
		case m.spares <- conn:
		default:
			conn.Close()
		}
	case roleControl:
		only(&m.first[0], m.control, conn)
	case roleOutput:
		only(&m.first[1], m.output, conn)
	default:
		conn.Close()
	}
}

// only hands over the first connection, and closes the others.
func only(first *sync.Once, to chan<- net.Conn, conn net.Conn) {
	taken := false
	first.Do(func() {
		to <- conn
		taken = true
	})
	if !taken {
		conn.Close()
	}
}

func (m *mux) reach(conn net.Conn) {
	place := make([]byte, 1)
	_ = conn.SetReadDeadline(time.Now().Add(dialLimit))
	if _, err := io.ReadFull(conn, place); err != nil || int(place[0]) >= len(m.reaches) {
		conn.Close()
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	there, err := net.DialTimeout("tcp", m.reaches[place[0]], dialLimit)
	if err != nil {
		conn.Close()
		return
	}
	join(conn, there)
}

// serve listens where the program seems to listen.
func (m *mux) serve(ctx context.Context, address string) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", address)
	if err != nil {
		return // what is served there helps, and is not needed
	}
	context.AfterFunc(ctx, func() { l.Close() })
	each(l.Accept, func(conn net.Conn) {
		select {
		case spare := <-m.spares:
			join(conn, spare)
		case <-time.After(dialLimit):
			conn.Close()
		case <-ctx.Done():
			conn.Close()
		}
	})
}

// extend is the container's end of what the program reaches: it listens at the same address, which has that place in the list,
// until ctx ends. A program that ran before may be about to leave that address; other containers of a Pod have the same ones.
func extend(ctx context.Context, call caller, address string, place byte) error {
	var lc net.ListenConfig
	var l net.Listener
	isInUse := func(err error) bool { return errors.Is(err, syscall.EADDRINUSE) }
	err := retry(ctx, endLimit, isInUse, func() (err error) {
		l, err = lc.Listen(ctx, "tcp", address)
		return err
	})
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { l.Close() })
	go passOn(l, call, place)
	return nil
}

// passOn joins each connection with one to the place, until the listener is closed.
func passOn(l net.Listener, call caller, place byte) {
	each(l.Accept, func(conn net.Conn) {
		there, err := call(roleReach, place)
		if err != nil {
			conn.Close()
			return
		}
		join(conn, there)
	})
}

// offer is the container's end of what the program serves: one connection after the other waits until somebody uses it.
func offer(call caller, address string) {
	for {
		spare, err := call(roleServe)
		if err != nil {
			return
		}
		first := make([]byte, 1)
		if _, err := io.ReadFull(spare, first); err != nil {
			spare.Close() // whoever used it had nothing to say
			continue
		}
		go func() {
			there, err := net.DialTimeout("tcp", address, dialLimit)
			if err != nil {
				spare.Close()
				return
			}
			if _, err := there.Write(first); err != nil {
				there.Close()
			}
			join(spare, there)
		}()
	}
}
