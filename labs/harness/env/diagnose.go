package env

import (
	"context"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// evidenceRequests is how far back a manager's requests are looked at.
const evidenceRequests = 20000

// checkNamespaces finds the namespaces of checks.
var checkNamespaces = regexp.MustCompile(`\b` + checkNamespace + `[a-z0-9-]+-[a-z0-9]{5}\b`)

// collectEvidence looks for what may explain why the running check failed with f: chosen, the most telling
// first. It keeps the whole of what it saw among the artifacts. It takes [diagnosticsTimeout] at most, and what
// it cannot find out it leaves out: a check never fails for want of evidence.
func collectEvidence(ctx context.Context, f *finding.Finding) []finding.Evidence {
	if current.admin == nil {
		return nil
	}
	c := running()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), diagnosticsTimeout)
	defer cancel()
	s := &diagnostics.Snapshot{
		Namespaces: c.allNamespaces(), CheckNamespaces: checkNamespaces, Quota: quotaName, Workspace: current.config.Workspace,
		Manager: current.config.NeedsManager(), User: managerUser(),
		Gone: f.Cause == suite.CauseManagerExited || f.Cause == suite.CauseManagerSilent,
	}
	if s.Manager {
		s.Log = managersLog()
		s.Requests = recentRequests(ginkgo.CurrentSpecReport().StartTime)
	}
	if clientset, err := kubernetes.NewForConfig(current.adminConfig); err == nil {
		s.Read(ctx, current.admin, clientset, gvk)
	}
	s.Keep(filepath.Join(current.config.Artifacts, c.id))
	return s.Explain(f)
}

// managersLog is the last part of the manager's output.
func managersLog() string {
	if current.env == nil {
		return ""
	}
	return current.env.manager.output.String()
}

// recentRequests are the manager's requests since the check began, and those before it that are in no
// namespace: a cache asks for all of them at once, at the manager's start.
func recentRequests(began time.Time) []apiproxy.Request {
	return slices.DeleteFunc(requests(max(0, RequestCount()-evidenceRequests)), func(r apiproxy.Request) bool {
		return r.Namespace != "" && r.Time.Before(began)
	})
}
