package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/example/operator-lab/labs/internal/board/store"
)

const (
	// waitLimit is how long a learner's request may wait for news. Their side asks again then.
	waitLimit = 25 * time.Second
	// seatsEach is how many requests of one learner wait at once: some terminals. A further one is answered at once.
	seatsEach = 3
	// formLimit in bytes is more than a hint takes that is as long as it may be.
	formLimit = 8 << 10
)

// seats are where requests wait for news, a few for each learner.
type seats struct {
	mu    sync.Mutex
	taken map[int64]int
}

func newSeats() *seats { return &seats{taken: map[int64]int{}} }

func (s *seats) take(learner int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[learner] >= seatsEach {
		return false
	}
	s.taken[learner]++
	return true
}

func (s *seats) leave(learner int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.taken[learner]--
}

// getMessages tells a learner what was said to them and to everybody. With ?wait=SECONDS and the ETag of the last
// answer in If-None-Match it waits until that is another one, or answers 304.
func (s *Server) getMessages(w http.ResponseWriter, r *http.Request, h store.Holder) {
	list, tag, said := s.live.letters(h.Learner.ID)
	if have := r.Header.Get("If-None-Match"); have == tag {
		if !s.await(w, r, h.Learner.ID, said) {
			w.Header().Set("ETag", tag)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		if _, err := s.holder(r); err != nil {
			Problem(w, http.StatusUnauthorized, store.ErrDenied) // it ended meanwhile
			return
		}
		list, tag, _ = s.live.letters(h.Learner.ID)
	}
	w.Header().Set("ETag", tag)
	Answer(w, http.StatusOK, map[string]any{"messages": list})
}

// await waits until something was said, and says whether it was.
func (s *Server) await(w http.ResponseWriter, r *http.Request, learner int64, said <-chan struct{}) bool {
	seconds, err := strconv.Atoi(r.URL.Query().Get("wait"))
	if err != nil || seconds <= 0 || !s.seats.take(learner) {
		return false
	}
	defer s.seats.leave(learner)
	wait := min(time.Duration(seconds)*time.Second, waitLimit)
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // there is nothing more to read; tests have no deadlines
	_ = control.SetWriteDeadline(time.Now().Add(wait + writeTimeout))
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-said:
		return true
	case <-timer.C:
	case <-r.Context().Done():
	}
	return false
}

// postReceipt takes a learner's answer to a message.
func (s *Server) postReceipt(w http.ResponseWriter, r *http.Request, h store.Holder) {
	data, ok := body(w, r)
	if !ok {
		return
	}
	var receipt struct {
		Answer store.Answer `json:"answer"`
	}
	if err := json.Unmarshal(data, &receipt); err != nil {
		Problem(w, http.StatusUnprocessableEntity, fmt.Errorf("read receipt: %w", err))
		return
	}
	err := s.Store.AddReceipt(r.Context(), store.Receipt{Message: r.PathValue("id"), Learner: h.Learner.ID, Answer: receipt.Answer})
	switch {
	case errors.Is(err, store.ErrNotFound):
		Problem(w, http.StatusNotFound, errors.New("there is no such message for you, or it was taken back"))
	case err != nil:
		s.fail(w, r, err)
	default:
		s.Changed()
		Answer(w, http.StatusOK, map[string]string{"status": "kept"})
	}
}

// postMessage says something to the room, or to one learner, as a form of the page asks for it.
func (s *Server) postMessage(w http.ResponseWriter, r *http.Request) {
	m, err := s.message(w, r)
	if err == nil {
		err = s.Store.AddMessage(r.Context(), &m)
	}
	s.said(w, r, err)
}

// message reads the form: kind, to ("all", or a learner's id), and text or lab.
func (s *Server) message(w http.ResponseWriter, r *http.Request) (store.Message, error) {
	r.Body = http.MaxBytesReader(w, r.Body, formLimit)
	if err := r.ParseForm(); err != nil {
		return store.Message{}, fmt.Errorf("%w: it is no form, or too long", store.ErrMessage)
	}
	m := store.Message{Kind: store.Kind(r.PostForm.Get("kind")), Text: r.PostForm.Get("text")}
	if m.Kind == store.Step {
		lab, err := strconv.Atoi(r.PostForm.Get("lab"))
		if err == nil {
			_, err = s.Course.Lab(lab)
		}
		if err != nil {
			return m, fmt.Errorf("%w: there are labs 1 to %d", store.ErrMessage, len(s.Course.Labs))
		}
		m.Lab = lab
		return m, nil
	}
	if to := r.PostForm.Get("to"); to != "all" {
		id, err := strconv.ParseInt(to, 10, 64)
		if err != nil || id <= 0 {
			return m, fmt.Errorf("%w: it does not say to whom", store.ErrMessage)
		}
		m.Learner = id
	}
	return m, nil
}

// withdraw takes a message back.
func (s *Server) withdraw(w http.ResponseWriter, r *http.Request) {
	s.said(w, r, s.Store.Withdraw(r.Context(), r.PathValue("id")))
}

// said answers a form: with the page as it is now, or, to the page's script, with a word.
func (s *Server) said(w http.ResponseWriter, r *http.Request, err error) {
	if err == nil {
		err = s.live.refresh(r.Context()) // whoever sent it wants to see it
	}
	w.Header().Set("Vary", "Accept")
	script := strings.Contains(r.Header.Get("Accept"), "application/json")
	code := 0
	switch {
	case errors.Is(err, store.ErrMessage):
		code = http.StatusUnprocessableEntity
	case errors.Is(err, store.ErrNotFound):
		code, err = http.StatusNotFound, errors.New("there is no such learner, or no such message any more")
	case err != nil:
		s.fail(w, r, err)
		return
	}
	switch {
	case code != 0 && script:
		Problem(w, code, err)
	case code != 0:
		http.Error(w, err.Error(), code)
	case script:
		Answer(w, http.StatusOK, map[string]string{"status": "done"})
	default:
		http.Redirect(w, r, "/", http.StatusSeeOther)
	}
}
