package harness

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/internal/finding"
)

// CauseBlocked is the cause of a check that was given up because another one had failed. What it saw is
// that check's id.
const CauseBlocked = "blocked"

// outlook is what the first process says to somebody who waits.
type outlook struct {
	// Gone is about a manager that cannot do its work, nil when it can.
	Gone *finding.Finding `json:"gone,omitempty"`
	// Blocked is a failed check that the asking one requires, "" when there is none.
	Blocked string `json:"blocked,omitempty"`
	// Failed is the first failed check that does not require the asking one. One that does may have been quicker, and
	// the asking one, which explains it, is not given up for its sake.
	Failed string `json:"failed,omitempty"`
	// Explained says that a check which the asking one requires is still at work.
	Explained bool `json:"explained,omitempty"`
	// AtRest is for how long nothing has happened in the namespace that was asked about.
	AtRest time.Duration `json:"atRest,omitempty"`
}

// progress is how far the checks are.
type progress struct {
	mu     sync.Mutex
	failed []string // in order
	atWork map[string]bool
	ended  map[string]bool
}

func newProgress() *progress { return &progress{atWork: map[string]bool{}, ended: map[string]bool{}} }

func (p *progress) begin(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork[id] = true
}

func (p *progress) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.atWork, id)
	p.ended[id] = true
}

// over says whether all of the checks have ended.
func (p *progress) over(ids []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !slices.ContainsFunc(ids, func(id string) bool { return !p.ended[id] })
}

func (p *progress) fail(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failed = append(p.failed, id)
}

// first is the first failed check that is wanted, "" when there is none.
func (p *progress) first(wanted func(id string) bool) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.IndexFunc(p.failed, wanted); i >= 0 {
		return p.failed[i]
	}
	return ""
}

// anyAtWork says whether one of the checks has begun and not ended.
func (p *progress) anyAtWork(ids []string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(ids, func(id string) bool { return p.atWork[id] })
}

// elsewhere is what the other checks mean for one.
func (p *progress) elsewhere(check string, requires map[string][]string) outlook {
	required := requires[check]
	return outlook{
		Failed:    p.first(func(id string) bool { return !slices.Contains(requires[id], check) }),
		Blocked:   p.first(func(id string) bool { return slices.Contains(required, id) }),
		Explained: p.anyAtWork(required),
	}
}

func (s *stage) outlook(query url.Values) outlook {
	var o outlook
	if !suite.config.Unblocked {
		o = s.progress.elsewhere(query.Get("check"), suite.config.Requires)
	}
	o.Gone, o.AtRest = s.state(query.Get("namespace"))
	return o
}

// state is what the stage itself knows of an outlook.
func (s *stage) state(namespace string) (gone *finding.Finding, atRest time.Duration) {
	if namespace != "" && s.manager.Running() > 0 {
		atRest = s.pulse.atRest(namespace)
	}
	return s.gone(), atRest
}

// look asks the first process whether waiting still makes sense. Without a manager there is nobody to
// ask, and nothing that could end a wait early.
func look(ctx context.Context, namespace string) outlook {
	var o outlook
	if suite.arena == nil {
		return o
	}
	query := checkQuery()
	query.Set("namespace", namespace)
	if err := suite.arena.get(ctx, pathOutlook, query, &o); err != nil {
		return outlook{} // the first process is ending; its own report says why
	}
	if suite.apart != nil {
		gone, atRest := suite.apart.state(namespace)
		o.Gone, o.AtRest = cmp.Or(gone, o.Gone), atRest
	}
	return o
}

// inVain is the failed check for whose sake the running one need not go on, "" when it has to: one that it requires, or,
// for a check that is [Apart] and takes much of the machine, any.
func (o outlook) inVain() string {
	if suite.apart != nil {
		return o.anyFailed()
	}
	return o.Blocked
}

// anyFailed is a failed check, "" when there is none: one that explains the running one before others.
func (o outlook) anyFailed() string { return cmp.Or(o.Blocked, o.Failed) }

// unasked is the failed check for whose sake the running one need not begin, "" when it has to.
func unasked(o outlook, spec ginkgo.SpecReport) string {
	if spec.SpecPriority <= int(Late) {
		return o.anyFailed()
	}
	return o.Blocked
}

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(CauseBlocked, "the check "+by+" holds", "%s", by)
}

// tell lets the other checks know by path how the running one fares.
func tell(ctx context.Context, path string) {
	if suite.arena == nil {
		return
	}
	_ = suite.arena.get(ctx, path, checkQuery(), nil)
}

func checkQuery() url.Values { return url.Values{"check": {ID()}} }

// lookBeforeFailing is [look] for a check that is about to fail. Which of two checks comes first is chance, so it
// lets one that it requires, and that is at work, fail before it.
func lookBeforeFailing(ctx context.Context) outlook {
	ctx, cancel := context.WithTimeout(ctx, CourtesyBudget)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		o := look(context.Background(), "")
		if o.Gone != nil || o.Blocked != "" || !o.Explained {
			return o
		}
		select {
		case <-ctx.Done():
			return o
		case <-tick.C:
		}
	}
}
