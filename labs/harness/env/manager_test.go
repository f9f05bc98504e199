package env

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/suite"
)

func TestPassesAreSummed(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`controller_runtime_reconcile_total{controller="memcached",result="success"} 7
controller_runtime_reconcile_total{controller="memcached",result="requeue_after"} 2
controller_runtime_reconcile_total{controller="memcached",result="error"} 3
controller_runtime_reconcile_time_seconds_bucket{controller="memcached",le="0.005"} 3
`))
	}))
	m := &ManagerProcess{metrics: strings.TrimPrefix(server.URL, "http://")}
	want := Passes{All: 12, Failed: 3, Again: 2}
	if got, counted := m.passes(t.Context()); got != want || !counted {
		t.Errorf("%+v, %t; want %+v", got, counted, want)
	}
	server.Close()
	if got, counted := m.passes(t.Context()); got != (Passes{}) || counted {
		t.Errorf("without metrics: %+v, %t", got, counted)
	}
}

// A manager that ended by itself is gone. One that was stopped is not.
func TestManagerGone(t *testing.T) {
	ended := make(chan struct{})
	close(ended)
	m := &ManagerProcess{output: logOf(t)}
	if f := m.gone(); f != nil {
		t.Errorf("not started: %v", f)
	}
	fmt.Fprintln(m.output, "ERROR no such kind")
	m.run.Store(&managerRun{cmd: &exec.Cmd{}, ended: ended, lasted: time.Second})
	if f := m.gone(); f == nil || f.Cause != suite.CauseManagerExited || !strings.Contains(f.Seen, "no such kind") {
		t.Errorf("ended by itself: %v", f)
	}
}
