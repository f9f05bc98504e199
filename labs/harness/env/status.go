package env

import (
	"cmp"
	"path/filepath"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2/types"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Status is what the other checks, and the manager, mean for a check that waits.
type Status struct {
	// Gone is about a manager that cannot do its work, nil when it can.
	Gone *finding.Finding
	// Pointless is a failed check that makes the running one pointless, "" when there is none.
	Pointless string
	// Failed is the first other check that failed, "" when there is none: the verdict is clear.
	Failed string
	// Idle is for how long nothing has happened in the namespaces of the check.
	Idle time.Duration
}

// status says whether waiting still makes sense for the running check.
func status() Status {
	c := running()
	s := current.results.elsewhere(c.id, current.config.Opening[c.lab], c.long)
	s.Gone = current.shared.Gone
	if current.env != nil {
		s.Gone, s.Idle = cmp.Or(current.env.gone(), s.Gone), current.env.idle(c.allNamespaces())
	}
	return s
}

// givenUp is why the running check need not go on, nil when it has to.
func givenUp(s Status) error {
	switch {
	case s.Gone != nil:
		return s.Gone
	case s.Pointless != "":
		return blocked(s.Pointless)
	}
	return nil
}

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(suite.CauseBlocked, "the check "+by+" holds", "%s", by)
}

// results are those of the checks of all processes. The zero value has none.
type results struct {
	reader suite.Reader
	run    string

	mu     sync.Mutex
	read   time.Time
	failed []string // in order
}

func newResults(path, run string) *results {
	return &results{reader: suite.Reader{Path: path}, run: run}
}

// elsewhere is what the results of others mean for a check: it is pointless when the opening check of its lab has failed, and, if
// it takes long, when any has.
func (r *results) elsewhere(check, opening string, long bool) (s Status) {
	if r == nil {
		return s
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.read) >= pollInterval {
		r.read = now
		r.update()
	}
	for _, id := range r.failed {
		s.Failed = cmp.Or(s.Failed, id)
		if id == opening && id != check || long && s.Pointless == "" {
			s.Pointless = id
		}
	}
	return s
}

// update reads what was added. What cannot be read is missing from the verdict, too, which says so.
func (r *results) update() {
	added, _ := r.reader.Next()
	for _, result := range added {
		if result.Run == r.run && result.State == suite.Failed && result.Load == 0 {
			r.failed = append(r.failed, result.Check)
		}
	}
}

// tell adds a result to the file of the run.
func tell(result suite.Result) error {
	if current.config.Artifacts == "" {
		return nil // not a run of the lab command
	}
	result.Run = current.shared.Run
	return suite.Append(filepath.Join(current.config.Artifacts, suite.ResultsFile), result)
}

// WriteResult adds a check that has ended to the results of the run. The suite calls it after each check.
func WriteResult(spec types.SpecReport) {
	id := label(spec.Labels(), suite.CheckLabel)
	if id == "" {
		return // not a check
	}
	result := running().result
	result.Check, result.Began, result.Ended = id, spec.StartTime, spec.EndTime
	switch {
	case spec.State == types.SpecStatePassed:
		result.State = suite.Passed
	case spec.State.Is(types.SpecStateSkipped | types.SpecStatePending):
		return
	case spec.State.Is(types.SpecStateFailed | types.SpecStateTimedout):
		if result.State == "" {
			result.State, result.Load = suite.Failed, busy()
			result.Finding = finding.New(finding.CauseOther, "the check to end", "%s", spec.FailureMessage())
		}
	default:
		result.State, result.Defect = suite.Broken, spec.State.String()+" "+spec.Failure.ForwardedPanic
	}
	_ = tell(result) // a check without a result is told by the verdict
}
