// Package server is the board on the network: it takes results from learners and shows the room to the instructor. A
// learner's token writes that learner's results and nothing else; an instructor's reads the room.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/intake"
	"github.com/example/operator-lab/labs/classroom/board/page"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// tick is how often the board looks whether another process has changed the store, such as `classroom board
	// token add`, and whether time has made somebody stuck.
	tick = time.Second
	// headerTimeout and readTimeout are for a request, and cover a weak Wi-Fi; idleTimeout is between two.
	headerTimeout, readTimeout, idleTimeout = 5 * time.Second, 20 * time.Second, time.Minute
	// writeTimeout is for an answer. A stream of updates has it for each update.
	writeTimeout = 20 * time.Second
	// shutdownGrace is how long requests may finish when the board ends: a result that is being written.
	shutdownGrace = 3 * time.Second
	// headerLimit in bytes; browsers and `lab check` send less than one KiB.
	headerLimit = 16 << 10
)

// Config is what a server serves.
type Config struct {
	Store  *store.Store
	Course *course.Course
	Rules  room.Rules
	// Log is told what goes wrong, in one line each; nil drops it.
	Log func(line string)
	// Now is the clock; nil is the machine's.
	Now func() time.Time
	// Certificate is the server's own. Requests of other machines have to be encrypted.
	Certificate tls.Certificate
	// Checked is the beginning of the paths of what may be asked for without encryption, because whoever asks checks what
	// they get; "" is nothing.
	Checked string
	// Public is what is served beside the board to everybody who asks, without a token, by its pattern for
	// [http.ServeMux]. It is for files that are no secrets; what stands before the board's own pages, stands before
	// them, too.
	Public map[string]http.Handler
	// Learners is what is served beside the board to learners with a token that is good, by its pattern.
	Learners map[string]LearnerHandler
}

// LearnerHandler answers a learner, who is trusted by their token. Instructors do not get there.
type LearnerHandler = func(w http.ResponseWriter, r *http.Request, h store.Holder)

// Server is a board.
type Server struct {
	Config
	live *live
	// results and requests bound what a token sends.
	results, requests *limits
	conns             *connLimiter
	intake            intake.Intake
	keeping           sync.Mutex // while a result is read and kept
	poke              chan struct{}
	// streams bounds how many browsers follow at once.
	streams chan struct{}
}

// New makes a server, which shows what is in the store already.
func New(ctx context.Context, c Config) (*Server, error) {
	if c.Log == nil {
		c.Log = func(string) {}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{
		Config: c, live: newLive(c.Store, c.Course, c.Rules, c.Now), results: newLimits(resultsPerSecond, resultsAtOnce), requests: newLimits(requestsPerSecond, requestsAtOnce), conns: newConnLimiter(),
		intake: intake.Intake{Store: c.Store, Course: c.Course, Now: c.Now},
		poke:   make(chan struct{}, 1), streams: make(chan struct{}, streamLimit),
	}
	if err := s.live.refresh(ctx); err != nil {
		return nil, fmt.Errorf("start board: %w", err)
	}
	return s, nil
}

// Changed tells the server that the store has something new, so that it need not wait for its next look.
func (s *Server) Changed() {
	select {
	case s.poke <- struct{}{}:
	default: // it is about to look anyway
	}
}

// Follow keeps the page up to date with the store until ctx ends.
func (s *Server) Follow(ctx context.Context) {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	for {
		if err := s.live.refresh(ctx); err != nil && ctx.Err() == nil {
			s.Log(err.Error())
		}
		select {
		case <-ctx.Done():
			return
		case <-s.poke:
		case <-ticker.C:
		}
	}
}

// Serve serves on the listeners until ctx ends, and then lets requests finish that write a result. It closes them.
func (s *Server) Serve(ctx context.Context, listeners ...net.Listener) error {
	streaming, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	followed := make(chan struct{})
	go func() { defer close(followed); s.Follow(ctx) }()
	server := &http.Server{
		Handler: s.Handler(), ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: headerLimit,
		BaseContext: func(net.Listener) context.Context { return streaming },
		ErrorLog:    log.New(lines(s.Log), "", 0),
	}
	server.RegisterOnShutdown(stop) // a stream would never finish by itself
	spare := newSpareConnections()
	server.ConnState, server.ConnContext = spare.follow, withConn
	server.RegisterOnShutdown(spare.close)
	ended := make(chan error, len(listeners))
	for _, l := range listeners {
		go func() { ended <- server.Serve(s.listener(l)) }()
	}
	select {
	case err := <-ended:
		return fmt.Errorf("serve board: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
	defer cancel()
	err := server.Shutdown(grace)
	if err != nil {
		err = server.Close()
	}
	<-followed
	return err
}

// lines makes a writer of a log function.
type lines func(string)

func (l lines) Write(p []byte) (int, error) {
	l(string(p))
	return len(p), nil
}

// Handler answers the board's requests. [Server.Follow] has to run beside it.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/v1/results", s.learner(s.results, s.postResult))
	mux.HandleFunc("GET /assets/", s.assets())
	mux.HandleFunc("POST /login", s.login)
	mux.HandleFunc("POST /logout", s.logout)
	mux.HandleFunc("GET /{$}", s.instructor(s.board))
	mux.HandleFunc("GET /events", s.instructor(s.events))
	mux.HandleFunc("GET /cell/{learner}/{lab}", s.instructor(s.cell))
	mux.HandleFunc("GET /export/{format}", s.instructor(s.export))
	for pattern, handler := range s.Public {
		mux.Handle(pattern, handler)
	}
	for pattern, handler := range s.Learners {
		mux.HandleFunc(pattern, s.learner(s.requests, handler))
	}
	return s.guarded(mux)
}

func (s *Server) assets() http.HandlerFunc {
	files := http.StripPrefix("/assets/", http.FileServerFS(page.Assets()))
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-cache") // the next checkout may have others
		files.ServeHTTP(w, r)
	}
}

// fail answers with an error of ours. Nobody outside is told more than that.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // nobody is listening any more
	}
	s.Log(plain.Line(fmt.Sprintf("%s %s: %v", r.Method, r.URL.Path, err)))
	http.Error(w, "The board could not do this; the terminal that it runs in says why.", http.StatusInternalServerError)
}
