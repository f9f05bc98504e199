package boardtest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/example/operator-lab/labs/classroom/board/boardtest"
	"github.com/example/operator-lab/labs/classroom/board/room"
	"github.com/example/operator-lab/labs/classroom/board/store"
)

const (
	// crowd is how many learners send a result each every period: a hundred times what a room does.
	crowd  = 60
	period = 2 * time.Second
	// short is how long they go on, unless BOARD_LOAD says otherwise: BOARD_LOAD=5m.
	short = 20 * time.Second
	// updateLimit is how long after its acceptance a result may take to stand on the page: 95 of 100 on a
	// machine that is left alone for the long form, and half of them where others work, too.
	updateLimit = 100 * time.Millisecond
)

func loadTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("BOARD_LOAD")
	if text == "" {
		return short
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("BOARD_LOAD=%s is no time, such as 5m", text)
	}
	return d
}

// traffic is what the learners did.
type traffic struct {
	mu sync.Mutex
	// accepted is when the board had taken a run, answers how long it took to.
	accepted map[string]time.Time
	answers  []time.Duration
	// last is each learner's last run.
	last map[int]string
}

// observe has the page note when each run is to be seen.
const observe = `window.seen = {}; window.slow = 0;
new MutationObserver((list) => { for (const m of list) window.seen[m.target.dataset.run] ??= Date.now(); })
  .observe(document.querySelector("#room tbody"), {subtree: true, attributes: true, attributeFilter: ["data-run"]});
new PerformanceObserver((list) => { for (const e of list.getEntries()) window.slow = Math.max(window.slow, e.duration); })
  .observe({type: "longtask"});`

func TestLoad(t *testing.T) {
	c := boardtest.Course(t)
	board := boardtest.Serve(t, c, room.DefaultRules)
	var tokens []string
	for i := range crowd {
		tokens = append(tokens, board.Learner(t, fmt.Sprintf("learner-%d", i+1)))
	}
	b := open(t, projector)
	b.open(board)
	b.do(b.until(fmt.Sprintf(`document.querySelectorAll("#room tbody tr").length === %d`, crowd)), chromedp.Evaluate[chromedp.Void](observe))

	seen := &traffic{accepted: map[string]time.Time{}, last: map[int]string{}}
	ctx, cancel := context.WithTimeout(t.Context(), loadTime(t))
	defer cancel()
	var all sync.WaitGroup
	for i, token := range tokens {
		all.Go(func() { seen.learner(ctx, t, board, i, token) })
	}
	all.Wait()
	b.do(b.until(seen.shown()))
	b.shoot("load")
	seen.nothingLost(t, board)
	seen.quick(t, value[map[string]float64](b, "window.seen"), value[float64](b, "window.slow"))
}

// learner sends results until ctx ends.
func (s *traffic) learner(ctx context.Context, t *testing.T, board *boardtest.Board, i int, token string) {
	first := time.NewTimer(period * time.Duration(i) / crowd) // not all at once
	defer first.Stop()
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	next := first.C
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-next:
		}
		if next = ticker.C; n == 0 {
			ticker.Reset(period)
		}
		lab := n/5%len(board.Course.Labs) + 1
		var red []string
		if n%5 < 4 {
			red = []string{board.Course.Labs[lab-1].Checks[n%2].ID}
		}
		run := fmt.Sprintf("load-%d-%d", i, n)
		r := boardtest.Result(board.Course, lab, run, time.Now(), red...)
		begun := time.Now()
		code, err := board.Post(context.WithoutCancel(ctx), token, r)
		if err != nil || code != http.StatusCreated {
			t.Errorf("%s: %d, %v", run, code, err)
			return
		}
		s.mu.Lock()
		s.accepted[run], s.last[i] = time.Now(), fmt.Sprintf("/cell/%d/%d %s", i+1, lab, run)
		s.answers = append(s.answers, time.Since(begun))
		s.mu.Unlock()
	}
}

// shown is true in the page when everybody's last result stands there.
func (s *traffic) shown() string {
	var last []string
	for _, run := range s.last {
		last = append(last, run)
	}
	data, _ := json.Marshal(last) // texts
	return fmt.Sprintf(`%s.every((text) => { const [href, run] = text.split(" ");
		return document.querySelector('#room a[href="' + href + '"]').parentElement.dataset.run === run; })`, data)
}

func (s *traffic) nothingLost(t *testing.T, board *boardtest.Board) {
	kept := map[string]bool{}
	err := board.Store.Each(t.Context(), 0, func(r store.Result) error {
		kept[r.Run] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for run := range s.accepted {
		if !kept[run] {
			t.Errorf("%s was accepted and is gone", run)
		}
	}
	if len(kept) < crowd*3 || len(kept) != len(s.accepted) {
		t.Errorf("%d results are kept, %d were accepted", len(kept), len(s.accepted))
	}
}

// quick asserts how long results took to the page.
func (s *traffic) quick(t *testing.T, seen map[string]float64, longest float64) {
	var updates []time.Duration
	for run, accepted := range s.accepted {
		at, ok := seen[run]
		if !ok {
			t.Errorf("%s was never on the page", run)
			continue
		}
		updates = append(updates, max(0, time.UnixMilli(int64(at)).Sub(accepted)))
	}
	if len(updates) == 0 {
		t.Fatal("nothing was on the page")
	}
	t.Logf("%d results; answered: %s; on the page after the answer: %s; longest task of the page %.0f ms",
		len(updates), spread(s.answers), spread(updates), longest)
	share := 50
	if loadTime(t) > short {
		share = 95
	}
	if late := percentile(updates, share); late >= updateLimit {
		t.Errorf("%d of 100 results take %v or more to the page, limit %v", 100-share, late, updateLimit)
	}
}

func spread(of []time.Duration) string {
	return fmt.Sprintf("median %v, p95 %v, p99 %v, worst %v", percentile(of, 50).Round(time.Millisecond),
		percentile(of, 95).Round(time.Millisecond), percentile(of, 99).Round(time.Millisecond), percentile(of, 100).Round(time.Millisecond))
}

// percentile is the smallest of the times that p of 100 of them do not exceed.
func percentile(times []time.Duration, p int) time.Duration {
	sorted := slices.Sorted(slices.Values(times))
	return sorted[max(0, (len(sorted)*p+99)/100-1)]
}
