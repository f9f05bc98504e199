package harness

import (
	"context"
	"net/url"
	"slices"
	"sync"
	"time"

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
	// Failed is any failed check, the first one that was told.
	Failed string `json:"failed,omitempty"`
	// AtRest is for how long nothing has happened in the namespace that was asked about.
	AtRest time.Duration `json:"atRest,omitempty"`
}

// failedChecks are the ids of the checks that have failed so far, in order.
type failedChecks struct {
	mu  sync.Mutex
	ids []string
}

func (f *failedChecks) add(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids = append(f.ids, id)
}

// among is the first of the wanted checks that has failed, "" when none has. Without wanted ones it is
// any.
func (f *failedChecks) among(wanted ...string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range f.ids {
		if len(wanted) == 0 || slices.Contains(wanted, id) {
			return id
		}
	}
	return ""
}

func (s *stage) outlook(query url.Values) outlook {
	o := outlook{Gone: s.gone()}
	if ns := query.Get("namespace"); ns != "" && s.manager.Running() > 0 {
		o.AtRest = s.pulse.atRest(ns)
	}
	if suite.config.Unblocked {
		return o
	}
	o.Failed = s.failed.among()
	if required := suite.config.Requires[query.Get("check")]; len(required) > 0 {
		o.Blocked = s.failed.among(required...)
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

// managerGone is the finding about a manager that ended by itself, or nil.
func managerGone() *finding.Finding { return look(context.Background(), "").Gone }

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(CauseBlocked, "the check "+by+" holds", "%s", by)
}

// tellFailed lets the checks that require this one know that it failed.
func tellFailed(ctx context.Context) {
	if suite.arena == nil {
		return
	}
	_ = suite.arena.get(ctx, pathFailed, url.Values{"check": {ID()}}, nil)
}
