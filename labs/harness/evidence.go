package harness

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/labs/harness/evidence"
	"github.com/example/operator-lab/labs/harness/recorder"
	"github.com/example/operator-lab/labs/internal/finding"
)

// EvidenceEntry is the name of the Ginkgo report entry that carries a failed check's evidence, as the JSON
// of a list of [finding.Evidence].
const EvidenceEntry = "evidence"

// evidenceRequests is how far back a manager's requests are looked at.
const evidenceRequests = 20000

// strangers finds the namespaces of checks: the API server makes names of this form, and so do we where they are reserved.
var strangers = regexp.MustCompile(`\b` + checkNamespace + `[a-z0-9-]+-[a-z0-9]{5}\b`)

// place is where the running check works.
type place struct {
	check      string
	namespaces []string
}

// remember adds a namespace of the running check, and forgets those of the one before.
func (p *place) remember(check, namespace string) {
	if p.check != check {
		*p = place{check: check}
	}
	p.namespaces = append(p.namespaces, namespace)
}

// of are the namespaces of the given check.
func (p *place) of(check string) []string {
	if p.check != check {
		return nil
	}
	return p.namespaces
}

// collectEvidence looks for what may explain why the running check failed with f: chosen, the most telling
// first. It keeps the whole of what it saw among the artifacts. It takes [EvidenceBudget] at most, and what
// it cannot find out it leaves out: a check never fails for want of evidence.
func collectEvidence(ctx context.Context, f *finding.Finding) []finding.Evidence {
	if suite.admin == nil || ID() == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), EvidenceBudget)
	defer cancel()
	s := &evidence.Sighting{
		Namespaces: suite.place.of(ID()), Strangers: strangers, Quota: quotaName, Workspace: suite.config.Workspace,
		Manager: suite.arena != nil, User: ManagerUser(),
		Gone: f.Cause == CauseManagerExited || f.Cause == CauseManagerSilent,
	}
	if s.Manager {
		s.Log = managersLog(ctx)
		s.Requests = recentRequests(ctx, ginkgo.CurrentSpecReport().StartTime)
	}
	if clientset, err := kubernetes.NewForConfig(suite.adminConfig); err == nil {
		s.Read(ctx, suite.admin, clientset, gvk)
	}
	s.Keep(filepath.Join(suite.config.Artifacts, ID()))
	return s.Explain(f)
}

// managersLog is the last part of the manager's output, "" when it cannot be had.
func managersLog(ctx context.Context) string {
	var log string
	if err := itsArena().get(ctx, pathLog, nil, &log); err != nil {
		return ""
	}
	return log
}

// recentRequests are the manager's requests since the check began, and those before it that are in no
// namespace: a cache asks for all of them at once, at the manager's start.
func recentRequests(ctx context.Context, began time.Time) []recorder.Request {
	n, err := Now(ctx)
	if err != nil {
		return nil
	}
	requests, err := Requests(ctx, max(0, n-evidenceRequests))
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(requests, func(r recorder.Request) bool {
		return r.Namespace != "" && r.Time.Before(began)
	})
}
