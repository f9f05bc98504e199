package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/example/operator-lab/labs/classroom/board/intake"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
)

const (
	// resultsPerSecond is how many results a token may send for long, and resultsAtOnce how many at once: those that waited
	// while the network was away. The fastest verdict there is takes a second.
	resultsPerSecond, resultsAtOnce = 1, 30
	// requestsPerSecond and requestsAtOnce are for what else learners ask. A check on a borrowed cluster looks at its nodes
	// twice in a second.
	requestsPerSecond, requestsAtOnce = 8, 60
)

// limits are the rates of tokens, by id. Only tokens of the store get here, so that there are as many as those.
type limits struct {
	perSecond rate.Limit
	atOnce    int

	mu      sync.Mutex
	byToken map[string]*rate.Limiter
}

func newLimits(perSecond rate.Limit, atOnce int) *limits {
	return &limits{perSecond: perSecond, atOnce: atOnce, byToken: map[string]*rate.Limiter{}}
}

// wait is how long the token has to wait before it may send again, 0 if it may now.
func (l *limits) wait(id string, now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.byToken[id]
	if limiter == nil {
		limiter = rate.NewLimiter(l.perSecond, l.atOnce)
		l.byToken[id] = limiter
	}
	reservation := limiter.ReserveN(now, 1)
	delay := reservation.DelayFrom(now)
	if delay > 0 {
		reservation.CancelAt(now)
	}
	return delay
}

// postResult takes a result of the learner whose token it is. The answer is 201 when it is on disk, 200 when it
// was there before; what has another answer is not kept.
func (s *Server) postResult(w http.ResponseWriter, r *http.Request, h store.Holder) {
	data, ok := body(w, r)
	if !ok {
		return
	}
	s.keep(w, r, h.Learner, data)
}

// body reads the request's, or answers that it cannot.
func body(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		Problem(w, http.StatusUnsupportedMediaType, errors.New("this takes application/json"))
		return nil, false
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, room.SizeLimit))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		Problem(w, http.StatusRequestEntityTooLarge, fmt.Errorf("this takes at most %d bytes", tooLarge.Limit))
		return nil, false
	}
	if err != nil {
		Problem(w, http.StatusBadRequest, fmt.Errorf("read request: %w", err))
		return nil, false
	}
	return data, true
}

// keepOne keeps one result at a time: while it is read, it takes many times its size in memory. A panic, which ends one
// request only, must not end this for all.
func (s *Server) keepOne(ctx context.Context, learner store.Learner, data []byte, sent time.Time) (bool, error) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	return s.intake.Keep(ctx, learner, data, sent)
}

func (s *Server) keep(w http.ResponseWriter, r *http.Request, learner store.Learner, data []byte) {
	sent, _ := http.ParseTime(r.Header.Get("Date")) // the zero time when it does not say
	kept, err := s.keepOne(r.Context(), learner, data, sent)
	switch invalid := (*intake.InvalidError)(nil); {
	case errors.As(err, &invalid):
		Problem(w, http.StatusUnprocessableEntity, err)
	case errors.Is(err, store.ErrQuota):
		Problem(w, http.StatusInsufficientStorage, store.ErrQuota)
	case err != nil:
		s.fail(w, r, err)
	case kept:
		s.Changed()
		Answer(w, http.StatusCreated, map[string]string{"status": "kept"})
	default:
		Answer(w, http.StatusOK, map[string]string{"status": "known"})
	}
}

// Problem answers with an error that the sender can do something about.
func Problem(w http.ResponseWriter, code int, err error) {
	Answer(w, code, map[string]string{"error": err.Error()})
}

// TooMany answers that the sender has to wait.
func TooMany(w http.ResponseWriter, wait time.Duration) {
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	Problem(w, http.StatusTooManyRequests, errors.New("too many requests in a row"))
}

// Answer answers with a value as JSON.
func Answer(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // who has gone does not get it
}
