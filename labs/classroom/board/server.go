package board

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

// Board takes results, and shows them.
type Board struct {
	Store  *Store
	Course *course.Course
	// Offer is what somebody gets who joins under a name, beside their token. It is called for one at a time.
	Offer func(name string) (roomclient.JoinAnswer, error)
	// Log is told what goes wrong, in one line each.
	Log func(line string)
	// Address and Key are what learners type to join; the page shows them.
	Address, Key string
	joining      sync.Mutex
}

const (
	// requestTimeout is for a request over a weak Wi-Fi.
	requestTimeout = 20 * time.Second
	// shutdownGrace is how long requests may finish when the board ends.
	shutdownGrace = 3 * time.Second
	// headerLimit is for the header of a request, in bytes.
	headerLimit = 16 << 10
)

// NewServer serves handler; it trusts nobody to be quick. Certificate is nil for one that is not encrypted.
func NewServer(handler http.Handler, certificate *tls.Certificate) *http.Server {
	s := &http.Server{
		Handler: handler, ReadHeaderTimeout: requestTimeout, ReadTimeout: requestTimeout, IdleTimeout: requestTimeout,
		MaxHeaderBytes: headerLimit, ErrorLog: log.New(io.Discard, "", 0), // who has mistyped the key hears of it at home
	}
	if certificate != nil {
		s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{*certificate}, MinVersion: tls.VersionTLS13}
	}
	return s
}

// ForLearners answers learners' machines, and is to be served over TLS.
func (b *Board) ForLearners() http.Handler {
	mux := http.NewServeMux()
	for path, answer := range map[string]func(token string, body []byte) (any, error){
		roomclient.JoinPath: b.join, roomclient.ResultsPath: b.take,
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
			var value any
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, progress.SizeLimit))
			if err == nil {
				value, err = answer(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), body)
			}
			switch {
			case errors.Is(err, errStranger):
				http.Error(w, err.Error(), http.StatusUnauthorized)
			case errors.Is(err, errOurs):
				b.fail(w, err)
			case err != nil:
				http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			default:
				_ = json.NewEncoder(w).Encode(value) // who has gone does not get it
			}
		})
	}
	return mux
}

var (
	errStranger = errors.New("nobody has joined with your token: join the classroom again")
	// errOurs says that who asked is not at fault, and may ask again.
	errOurs = errors.New("board")
)

func (b *Board) join(_ string, body []byte) (any, error) {
	b.joining.Lock()
	defer b.joining.Unlock()
	var asked roomclient.Room
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	token, err := b.Store.Join(asked.Name, asked.Token, time.Now())
	if err != nil {
		return nil, err
	}
	answer, err := b.Offer(strings.TrimSpace(asked.Name))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errOurs, err)
	}
	answer.Token = token
	return answer, nil
}

func (b *Board) take(token string, body []byte) (any, error) {
	name := b.Store.Holder(token)
	if name == "" {
		return nil, errStranger
	}
	result, err := progress.Accept(body, b.Course)
	if err != nil {
		return nil, err
	}
	return struct{}{}, b.Store.Keep(name, result, progress.Ended(result, time.Now()))
}

// fail answers with an error of ours. Nobody outside is told more than that.
func (b *Board) fail(w http.ResponseWriter, err error) {
	b.Log(err.Error())
	http.Error(w, "the classroom could not do this; the terminal that it runs in says why", http.StatusInternalServerError)
}

// Serve serves on a listener until ctx ends, and then lets requests finish that write a result.
func Serve(ctx context.Context, l net.Listener, s *http.Server) error {
	down := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownGrace)
		defer cancel()
		down <- errors.Join(s.Shutdown(grace), s.Close())
	})
	var err error
	if s.TLSConfig != nil {
		err = s.ServeTLS(l, "", "")
	} else {
		err = s.Serve(l)
	}
	if stop() {
		return err // it ended by itself
	}
	return <-down
}
