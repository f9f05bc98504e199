package env

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Status is what the other checks, and the manager, mean for a check that waits.
type Status struct {
	// Gone is about a manager that cannot do its work, nil when it can.
	Gone *finding.Finding
	// Blocked is a failed check that the asking one requires, "" when there is none.
	Blocked string
	// Failed is the first failed check that does not require the asking one. One that does require it does not count: the
	// asking check is its likely cause, and still has to run.
	Failed string
	// Explained says that a check which the asking one requires is still running.
	Explained bool
	// Idle is for how long nothing has happened in the namespaces of the check.
	Idle time.Duration
}

// What a line of the [suite.StatusFile] says about the check whose id follows.
const (
	begun  = "begun"
	failed = "failed"
	ended  = "ended"
)

// progress is how far the checks of all processes are, as far as this process has read the file.
type progress struct {
	path string

	mu      sync.Mutex
	read    int64    // bytes of the file
	failed  []string // in order
	running map[string]bool
}

func newProgress(artifacts string) *progress {
	return &progress{path: filepath.Join(artifacts, suite.StatusFile), running: map[string]bool{}}
}

// publish adds a line to the file.
func (p *progress) publish(what, id string) error {
	f, err := os.OpenFile(p.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(what + " " + id + "\n") // at once, so that the lines of several processes stay apart
	return errors.Join(err, f.Close())
}

// update reads what was added to the file.
func (p *progress) update() error {
	f, err := os.Open(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // no check has begun
	}
	if err != nil {
		return err
	}
	defer f.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	data, err := io.ReadAll(io.NewSectionReader(f, p.read, 1<<20))
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(data)) {
		what, id, whole := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !whole || !strings.HasSuffix(line, "\n") {
			break // the rest comes later
		}
		p.read += int64(len(line))
		switch what {
		case begun:
			p.running[id] = true
		case failed:
			p.failed = append(p.failed, id)
		case ended:
			delete(p.running, id)
		}
	}
	return nil
}

// elsewhere is what the other checks mean for one.
func (p *progress) elsewhere(check string, requires map[string][]string) Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	required := requires[check]
	return Status{
		Failed:    p.first(func(id string) bool { return !slices.Contains(requires[id], check) }),
		Blocked:   p.first(func(id string) bool { return slices.Contains(required, id) }),
		Explained: slices.ContainsFunc(required, func(id string) bool { return p.running[id] }),
	}
}

// first is the first failed check that is wanted, "" when there is none.
func (p *progress) first(wanted func(id string) bool) string {
	if i := slices.IndexFunc(p.failed, wanted); i >= 0 {
		return p.failed[i]
	}
	return ""
}

// status says whether waiting still makes sense for the running check.
func status() Status {
	var s Status
	if current.progress != nil && !current.config.Unblocked {
		if err := current.progress.update(); err != nil {
			return Status{Gone: finding.Machine("read how far the checks are", err)}
		}
		s = current.progress.elsewhere(checkID(), current.config.Requires)
	}
	s.Gone = current.shared.Gone
	if current.env != nil {
		s.Gone, s.Idle = cmp.Or(current.env.gone(), s.Gone), current.env.idle(current.place.all())
	}
	return s
}

// inVain is the failed check that makes the running one pointless, "" when it has to go on: one that it requires, or any,
// for a check that is [Long] or [Last].
func (s Status) inVain(spec ginkgo.SpecReport) string {
	if spec.SpecPriority == int(Last) || spec.SpecPriority == int(Long) {
		return s.anyFailed()
	}
	return s.Blocked
}

// anyFailed is a failed check, "" when there is none: one that explains the running one before others.
func (s Status) anyFailed() string { return cmp.Or(s.Blocked, s.Failed) }

// unasked is the failed check that makes it pointless to begin the running one, "" when it has to begin.
func unasked(s Status, spec ginkgo.SpecReport) string {
	if spec.SpecPriority <= int(Last) {
		return s.anyFailed()
	}
	return s.Blocked
}

// blocked is the finding of a check that is given up because of another one.
func blocked(by string) *finding.Finding {
	return finding.New(suite.CauseBlocked, "the check "+by+" holds", "%s", by)
}

// publish lets the checks of all processes know how the running one fares.
func publish(what string) error {
	if current.progress == nil {
		return nil
	}
	if err := current.progress.publish(what, checkID()); err != nil {
		return finding.Machine("write down how far the checks are", err)
	}
	return nil
}

// statusBeforeFailing is [status] for a check that is about to fail. Which of two checks comes first is chance, so it
// lets one that it requires, and that is running, fail before it.
func statusBeforeFailing(ctx context.Context) Status {
	ctx, cancel := context.WithTimeout(ctx, requiredCheckTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		s := status()
		if s.Gone != nil || s.Blocked != "" || !s.Explained {
			return s
		}
		select {
		case <-ctx.Done():
			return s
		case <-tick.C:
		}
	}
}
