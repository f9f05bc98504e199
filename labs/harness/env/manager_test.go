package env

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// A redirection would have the instructor's machine ask whomever a learner names.
func TestTheMetricsOfAManagerAreItsOwn(t *testing.T) {
	const metrics = `controller_runtime_reconcile_total{controller="memcached",result="success"} 7
controller_runtime_reconcile_total{controller="memcached",result="requeue_after"} 2
`
	var asked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Store(true)
		_, _ = w.Write([]byte(metrics))
	}))
	defer elsewhere.Close()
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		passes Passes
		counts bool
	}{
		"counts":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(metrics)) }, Passes{All: 9, Again: 2}, true},
		"sends on": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, Passes{}, false},
	} {
		server := httptest.NewServer(tc.answer)
		m := &ManagerProcess{metrics: strings.TrimPrefix(server.URL, "http://")}
		if got, counts := m.Passes(t.Context()); got != tc.passes || counts != tc.counts {
			t.Errorf("a manager that %s has %+v passes (%t), want %+v (%t)", name, got, counts, tc.passes, tc.counts)
		}
		server.Close()
	}
	if asked.Load() {
		t.Error("somebody else was asked")
	}
}
