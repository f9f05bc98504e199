package env

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A redirection would have the instructor's machine ask whomever a learner names.
func TestTheMetricsOfAManagerAreItsOwn(t *testing.T) {
	const metrics = `controller_runtime_reconcile_total{controller="memcached",result="success"} 7
controller_runtime_reconcile_total{controller="memcached",result="requeue_after"} 2
controller_runtime_reconcile_time_seconds_bucket{controller="memcached",le="0.005"} 3
controller_runtime_reconcile_time_seconds_sum{controller="memcached"} 1.25
controller_runtime_reconcile_time_seconds_sum{controller="other"} 5e-05
`
	var asked atomic.Bool
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Store(true)
		_, _ = w.Write([]byte(metrics))
	}))
	defer elsewhere.Close()
	passes := Passes{Counted: true, All: 9, Again: 2, Took: 1250*time.Millisecond + 50*time.Microsecond}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		passes Passes
	}{
		"counts":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(metrics)) }, passes},
		"sends on": {func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL, http.StatusFound) }, Passes{}},
	} {
		server := httptest.NewServer(tc.answer)
		m := &ManagerProcess{metrics: strings.TrimPrefix(server.URL, "http://")}
		if got := m.passes(t.Context()); got != tc.passes {
			t.Errorf("a manager that %s has %+v passes, want %+v", name, got, tc.passes)
		}
		server.Close()
	}
	if asked.Load() {
		t.Error("somebody else was asked")
	}
}
