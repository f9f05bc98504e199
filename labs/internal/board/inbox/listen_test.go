package inbox

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/example/operator-lab/labs/internal/board/outbox"
)

// silent is a board that does not answer.
type silent struct{}

func (silent) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// Nobody waits for a board that does not answer, and nobody hears of it but from their report.
func TestASilentBoardIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		box := Open(t.TempDir(), outbox.Config{URL: "http://127.0.0.1", Token: "labboard-secret"})
		box.client.Transport = silent{}
		begun := time.Now()
		wait := box.listen(t.Context())
		if took := time.Since(begun); took != 0 {
			t.Errorf("the verdict waits %v", took)
		}
		if got := wait(); len(got) != 0 {
			t.Errorf("heard %v", got)
		}
		if took := time.Since(begun); took != outbox.SendLimit {
			t.Errorf("the command waits %v, want %v", took, outbox.SendLimit)
		}
	})
}
