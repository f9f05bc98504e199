package harness

import (
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
}

func newProgress() *progress { return &progress{atWork: map[string]bool{}} }

func (p *progress) begin(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.atWork[id] = true
}

func (p *progress) end(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.atWork, id)
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
	o.Gone = s.gone()
	if ns := query.Get("namespace"); ns != "" && s.manager.Running() > 0 {
		o.AtRest = s.pulse.atRest(ns)
	}
	return o
}

// look asks the first process whether waiting still makes sense. Without a manager there is nobody to
// ask, and nothing that could end a wait early.
func look(ctx context.Context, namespace string) outlook {
	var o outlook
	if suite.arena == nil {
		return o
	}
	query := url.Values{"check": {ID()}, "namespace": {namespace}}
	if err := suite.arena.get(ctx, pathOutlook, query, &o); err != nil {
		return outlook{} // the first process is ending; its own report says why
	}
	return o
}

// inVain is the failed check for whose sake one that begins is not asked, "" when it is: one that it requires. Serial
// checks come after all others, stop and start the manager and take half of the time of a verdict, so they are not
// asked when one had failed before the first of them; and late ones when any has.
func inVain(o outlook, spec ginkgo.SpecReport, failedBefore *string) string {
	switch {
	case o.Blocked != "":
		return o.Blocked
	case spec.SpecPriority <= int(Late):
		return o.Failed
	case spec.IsSerial:
		return *failedBefore
	}
	return ""
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
	_ = suite.arena.get(ctx, path, url.Values{"check": {ID()}}, nil)
}

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
