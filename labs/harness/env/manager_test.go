package env

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestPasses(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`controller_runtime_reconcile_total{controller="memcached",result="success"} 7
controller_runtime_reconcile_total{controller="memcached",result="requeue_after"} 2
controller_runtime_reconcile_time_seconds_bucket{controller="memcached",le="0.005"} 3
controller_runtime_reconcile_time_seconds_sum{controller="memcached"} 1.25
controller_runtime_reconcile_time_seconds_sum{controller="other"} 5e-05
`))
	}))
	m := &ManagerProcess{metrics: strings.TrimPrefix(server.URL, "http://")}
	want := Passes{Counted: true, All: 9, Again: 2, Took: 1250*time.Millisecond + 50*time.Microsecond}
	if got := m.passes(t.Context()); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	server.Close()
	if got := m.passes(t.Context()); got != (Passes{}) {
		t.Errorf("one that does not tell has %+v", got)
	}
}
