package verdict

import (
	"fmt"
	"runtime"
	"time"

	"github.com/example/operator-lab/clusters"
)

const (
	// tooManyThreads of other programs for each processor make a failed check one that says nothing: a right answer might
	// have been as late. Beside two for each, right answers pass; beside twenty or forty, some fail.
	tooManyThreads = 3
	// lookBack is from how long before the end of a check they count, however short it was: what it judges may have
	// begun before it did.
	lookBack = 5 * time.Second
)

// threadsOf is how many threads of some programs were running or ready to run in a time, on average.
type threadsOf func(from, to time.Time) float64

// tooBusy is a *clusters.Problem when too many other programs wanted the processors while a check failed, or while the
// suite as a whole did.
func (r *run) tooBusy(c Classification, numbers []int) error {
	if c.Defect != "" {
		return r.busyWhile("the checks ran", r.started, time.Now(), numbers)
	}
	for _, check := range c.Checks {
		if check.State != Failed {
			continue
		}
		from := check.Began
		if since := check.Ended.Add(-lookBack); since.Before(from) {
			from = since
		}
		if err := r.busyWhile("the check "+check.ID+" ran", from, check.Ended, numbers); err != nil {
			return err
		}
	}
	return nil
}

func (r *run) busyWhile(while string, from, to time.Time, numbers []int) error {
	threads, processors := r.others(from, to), runtime.NumCPU()
	if threads < float64(tooManyThreads*processors) {
		return nil
	}
	return &clusters.Problem{
		What: fmt.Sprintf("this machine was too busy: while %s, other programs had %.0f threads at work on its %d processors", while, threads, processors),
		Fix:  "close other programs (top shows which), then " + again(numbers),
	}
}
