package outbox

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// silent is a board that does not answer.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// A board that hangs costs a second and nothing else.
func TestACheckDoesNotWaitForTheBoard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := Open(t.TempDir(), roomclient.Config{URL: "http://127.0.0.1", Token: "labboard-secret"})
		box.client.Transport = silent{}
		if err := box.Put([]*verdict.Result{{Schema: 1, Lab: 4, Run: "r1"}}); err != nil {
			t.Fatal(err)
		}
		begun, told := time.Now(), []string{}
		wait := box.deliver(t.Context(), func(line string) { told = append(told, line) })
		if took := time.Since(begun); took != 0 {
			t.Errorf("the answer waits %v", took)
		}
		wait()
		if took := time.Since(begun); took != SendLimit {
			t.Errorf("the command waits %v, want %v", took, SendLimit)
		}
		left, err := box.names()
		if err != nil || len(left) != 1 || len(told) != 1 || !strings.Contains(told[0], "does not answer") {
			t.Errorf("told %q, waiting %v, %v", told, left, err)
		}
	})
}
