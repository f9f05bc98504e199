package lending_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/server"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/lending"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/roomclient/borrow"
)

// shelf is a pool whose clusters are there at once, and their provider.
type shelf struct {
	clusters.Provider // the rest of it, which is not asked for
	*herd
	restarted string
	broken    error
}

func (s *shelf) Claim(context.Context) (*clusters.Cluster, bool, error) { return s.make() }

func (s *shelf) Nodes(_ context.Context, name string) ([]clusters.Node, error) {
	return []clusters.Node{{Name: name + "-control-plane", Running: true}}, s.broken
}

func (s *shelf) RestartControllers(_ context.Context, name string) error {
	s.restarted = name
	return s.broken
}

// house is a room's server that lends.
type house struct {
	url   string
	store *store.Store
	shelf *shelf
}

func serve(t *testing.T) *house {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	h := &house{store: s, shelf: &shelf{herd: &herd{dir: t.TempDir(), there: map[string]bool{}}}}
	lender := lending.Open(lending.Options{Pool: h.shelf, Provider: h.shelf, AtOnce: 1})
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	srv, err := server.New(t.Context(), server.Config{Store: s, Course: c, Rules: room.DefaultRules, Learners: lender.Routes()})
	if err != nil {
		t.Fatal(err)
	}
	listening := httptest.NewServer(srv.Handler())
	h.url = listening.URL
	t.Cleanup(func() {
		lender.Close()
		listening.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

func (h *house) token(t *testing.T, name string, valid time.Duration) string {
	t.Helper()
	made, err := h.store.AddLearnerToken(t.Context(), name, valid)
	if err != nil {
		t.Fatal(err)
	}
	return made.Reveal()
}

func (h *house) ask(t *testing.T, token, method, path string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, h.url+borrow.Path+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// borrow claims until there is a cluster.
func (h *house) borrow(t *testing.T, token, claim string) borrow.Loan {
	t.Helper()
	for mark := ""; ; {
		code, body := h.ask(t, token, http.MethodPost, "/"+claim+"?seen="+mark)
		var a borrow.Answer
		if err := json.Unmarshal([]byte(body), &a); err != nil || code >= 300 {
			t.Fatalf("claim: %d %s, %v", code, body, err)
		}
		if mark = a.Mark; a.Loan != nil {
			return *a.Loan
		}
	}
}

// The tokens are those of the board, and end with them.
func TestOnlyALearnersGoodTokenOpensTheServer(t *testing.T) {
	h := serve(t)
	ada, expired, revoked := h.token(t, "Ada", time.Hour), h.token(t, "Bob", time.Hour), h.token(t, "Cleo", 3*time.Hour)
	if _, err := h.store.Revoke(t.Context(), "Cleo"); err != nil {
		t.Fatal(err)
	}
	instructor, err := h.store.AddInstructorToken(t.Context(), "Grace", 3*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	h.borrow(t, ada, "check")
	h.store.SetClock(func() time.Time { return time.Now().Add(2 * time.Hour) }) // Ada's and Bob's have ended
	for name, tc := range map[string]struct {
		token string
		want  int
	}{
		"nobody":           {"", http.StatusUnauthorized},
		"a made-up one":    {"labboard-aaaaaaaa-" + strings.Repeat("b", 26), http.StatusUnauthorized},
		"an expired one":   {expired, http.StatusUnauthorized},
		"a borrower's own": {ada, http.StatusUnauthorized},
		"a revoked one":    {revoked, http.StatusUnauthorized},
		"an instructor's":  {instructor.Reveal(), http.StatusForbidden},
		"a good one":       {h.token(t, "Dan", time.Hour), http.StatusOK},
	} {
		if code, body := h.ask(t, tc.token, http.MethodGet, ""); code != tc.want {
			t.Errorf("%s: %d %s", name, code, body)
		}
		if tc.want == http.StatusOK {
			continue
		}
		for method, paths := range map[string][]string{
			http.MethodPost:   {"/check", "/check" + borrow.BeatPath, "/check" + borrow.ControllersPath},
			http.MethodGet:    {"/check" + borrow.NodesPath},
			http.MethodDelete: {"/check"},
		} {
			for _, path := range paths {
				if code, body := h.ask(t, tc.token, method, path); code != tc.want || strings.Contains(body, "key") {
					t.Errorf("%s: %s %s: %d %s", name, method, path, code, body)
				}
			}
		}
	}
	if h.shelf.left() != 1 || h.shelf.restarted != "" {
		t.Errorf("%d clusters are lent, restarted %q", h.shelf.left(), h.shelf.restarted)
	}
}

func TestABorrowerHasTheClusterAndWhatTheRoomSeesOfIt(t *testing.T) {
	h := serve(t)
	ada, bob := h.token(t, "Ada", time.Hour), h.token(t, "Bob", time.Hour)
	loan := h.borrow(t, ada, "check")
	if loan.Cluster.Name != "cluster-1" || string(loan.Kubeconfig) != "the key of cluster-1" || loan.Cluster.Kubeconfig != "" {
		t.Errorf("got %+v with %s", loan.Cluster, loan.Kubeconfig)
	}
	for _, tc := range []struct {
		who, token, method, path string
		code                     int
		body                     string
	}{
		{"Ada", ada, http.MethodGet, "", http.StatusOK, `{"claims":["check"]}`},
		{"Ada", ada, http.MethodPost, "/check" + borrow.BeatPath, http.StatusNoContent, ""},
		{"Ada", ada, http.MethodGet, "/check" + borrow.NodesPath, http.StatusOK, `"cluster-1-control-plane"`},
		{"Ada", ada, http.MethodPost, "/check" + borrow.ControllersPath, http.StatusNoContent, ""},
		{"Ada", ada, http.MethodPost, "/No_Name", http.StatusBadRequest, "lower case"},
		{"Bob", bob, http.MethodGet, "", http.StatusOK, `{"claims":[]}`},
		{"Bob", bob, http.MethodPost, "/check" + borrow.BeatPath, http.StatusGone, "does not know"},
		{"Bob", bob, http.MethodGet, "/check" + borrow.NodesPath, http.StatusGone, "does not know"},
		{"Bob", bob, http.MethodPost, "/check" + borrow.ControllersPath, http.StatusGone, "does not know"},
		{"Bob", bob, http.MethodPost, "/check", http.StatusAccepted, `"place":1`},
		{"Bob", bob, http.MethodDelete, "/check", http.StatusNoContent, ""},
		{"Ada", ada, http.MethodPost, "/check" + borrow.BeatPath, http.StatusNoContent, ""},
		{"Ada", ada, http.MethodDelete, "/check", http.StatusNoContent, ""},
		{"Ada", ada, http.MethodPost, "/check" + borrow.BeatPath, http.StatusGone, "given back"},
		{"Ada", ada, http.MethodPost, "/check", http.StatusGone, "given back"},
	} {
		if code, body := h.ask(t, tc.token, tc.method, tc.path); code != tc.code || !strings.Contains(body, tc.body) {
			t.Errorf("%s: %s %s: %d %s, want %d %s", tc.who, tc.method, tc.path, code, body, tc.code, tc.body)
		}
	}
	if h.shelf.restarted != "cluster-1" || h.shelf.left() > 0 {
		t.Errorf("restarted %q, %d left", h.shelf.restarted, h.shelf.left())
	}
}

// What the room's machine cannot do is told without the command that fixes it: it is for another machine.
func TestWhatTheRoomsMachineCannotDoIsTold(t *testing.T) {
	h := serve(t)
	ada := h.token(t, "Ada", time.Hour)
	h.borrow(t, ada, "check")
	h.shelf.broken = &clusters.Problem{What: "docker does not answer", Fix: "make setup", Err: errors.New("refused\nmore")}
	code, body := h.ask(t, ada, http.MethodGet, "/check"+borrow.NodesPath)
	if code != http.StatusBadGateway || !strings.Contains(body, "docker does not answer: refused\"") {
		t.Errorf("%d %s", code, body)
	}
	h.shelf.broken = errors.ErrUnsupported
	if code, body = h.ask(t, ada, http.MethodGet, "/check"+borrow.NodesPath); code != http.StatusNotImplemented {
		t.Errorf("%d %s", code, body)
	}
}

func TestALearnerWhoAsksTooMuchIsToldToWait(t *testing.T) {
	h := serve(t)
	ada, bob := h.token(t, "Ada", time.Hour), h.token(t, "Bob", time.Hour)
	last := func(token, method, path string, times int) (code int) {
		for i := range times {
			code, _ = h.ask(t, token, method, strings.ReplaceAll(path, "N", strconv.Itoa(i)))
		}
		return code
	}
	if code := last(ada, http.MethodPost, "/check-N", 6); code != http.StatusTooManyRequests {
		t.Errorf("the sixth claim: %d", code)
	}
	if code := last(bob, http.MethodGet, "", 200); code != http.StatusTooManyRequests {
		t.Errorf("the 200th look: %d", code)
	}
	if code := last(ada, http.MethodGet, "", 1); code != http.StatusOK {
		t.Errorf("somebody else's look: %d", code)
	}
}
