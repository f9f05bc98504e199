package lending

import (
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

// Routes are what a server serves to learners, by its pattern.
func (s *Server) Routes() map[string]server.LearnerHandler {
	const one = borrow.Path + "/{claim}"
	return map[string]server.LearnerHandler{
		"GET " + borrow.Path:                   s.serveClaims,
		"POST " + one:                          named(s.serveClaim),
		"DELETE " + one:                        named(s.serveReturn),
		"POST " + one + borrow.BeatPath:        named(s.serveBeat),
		"GET " + one + borrow.NodesPath:        named(s.serveNodes),
		"POST " + one + borrow.ControllersPath: named(s.serveControllers),
	}
}

// named refuses what cannot be the name of a claim.
func named(next server.LearnerHandler) server.LearnerHandler {
	return func(w http.ResponseWriter, r *http.Request, h store.Holder) {
		if err := clusters.CheckName(r.PathValue("claim")); err != nil {
			server.Problem(w, http.StatusBadRequest, err)
			return
		}
		next(w, r, h)
	}
}

func (s *Server) serveClaims(w http.ResponseWriter, _ *http.Request, h store.Holder) {
	server.Answer(w, http.StatusOK, map[string][]string{"claims": s.Claims(h.Learner)})
}

// serveClaim answers 200 with a cluster, 202 with a place in the queue, 410 when nothing will come of the claim, and 429 when it comes too
// soon after others.
func (s *Server) serveClaim(w http.ResponseWriter, r *http.Request, h store.Holder) {
	a, err := s.Claim(r.Context(), h.Learner, r.PathValue("claim"), r.URL.Query().Get(borrow.SeenParameter))
	tooMany, busy := errors.AsType[*TooManyError](err)
	switch {
	case busy:
		server.TooMany(w, tooMany.Wait)
	case err != nil:
		refuseEnded(w, err)
	case a.Loan != nil:
		server.Answer(w, http.StatusOK, a)
	default:
		server.Answer(w, http.StatusAccepted, a)
	}
}

func (s *Server) serveReturn(w http.ResponseWriter, r *http.Request, h store.Holder) {
	s.Return(h.Learner, r.PathValue("claim"))
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) serveBeat(w http.ResponseWriter, r *http.Request, h store.Holder) {
	if err := s.Beat(h.Learner, r.PathValue("claim")); err != nil {
		refuseEnded(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// serveNodes tells what only the room's machine can see: whether the cluster's machines run, and what they lack.
func (s *Server) serveNodes(w http.ResponseWriter, r *http.Request, h store.Holder) {
	name, err := s.Lent(h.Learner, r.PathValue("claim"))
	if err != nil {
		refuseEnded(w, err)
		return
	}
	inspector, ok := s.opts.Provider.(clusters.NodeInspector)
	if !ok {
		server.Problem(w, http.StatusNotImplemented, errors.ErrUnsupported)
		return
	}
	nodes, err := inspector.Nodes(r.Context(), name)
	if err != nil {
		refuseFailed(w, err)
		return
	}
	server.Answer(w, http.StatusOK, nodes)
}

func (s *Server) serveControllers(w http.ResponseWriter, r *http.Request, h store.Holder) {
	name, err := s.Lent(h.Learner, r.PathValue("claim"))
	if err != nil {
		refuseEnded(w, err)
		return
	}
	restarter, ok := s.opts.Provider.(clusters.ControllerRestarter)
	if !ok {
		server.Problem(w, http.StatusNotImplemented, errors.ErrUnsupported)
		return
	}
	// This takes longer than the server has for an answer, or for a request.
	control, end := http.NewResponseController(w), time.Now().Add(borrow.RestartTime)
	if err := errors.Join(control.SetReadDeadline(end), control.SetWriteDeadline(end)); err != nil {
		refuseFailed(w, err)
		return
	}
	if err := restarter.RestartControllers(r.Context(), name); err != nil {
		refuseFailed(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// refuseEnded answers that a claim has come to its end, and why. When its request ends while it waits, the server does,
// or nobody is there to read the answer.
func refuseEnded(w http.ResponseWriter, err error) {
	if _, ended := errors.AsType[*borrow.EndedError](err); !ended {
		err = &borrow.EndedError{Why: whyClosed}
	}
	server.Problem(w, http.StatusGone, err)
}

// refuseFailed tells what the room's machine could not do, in one line and without the command that fixes it there.
func refuseFailed(w http.ResponseWriter, err error) {
	if errors.Is(err, errors.ErrUnsupported) {
		server.Problem(w, http.StatusNotImplemented, errors.ErrUnsupported)
		return
	}
	text := err.Error()
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		text = p.Finding()
	}
	text, _, _ = strings.Cut(text, "\n")
	server.Problem(w, http.StatusBadGateway, errors.New(text))
}
