package env

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// look takes in what may explain a failure of the check. It takes [diagnosticsTimeout] at most, and what it cannot find out it
// leaves out: a check never fails for want of evidence. A check that is given up is not looked at.
func (c *check) look(failure Failure) *diagnostics.Snapshot {
	ctx, cancel := context.WithTimeout(context.Background(), diagnosticsTimeout) // the check's own may have expired
	defer cancel()
	s := &diagnostics.Snapshot{
		Namespaces: c.allNamespaces(), Quota: quotaName, Workspace: current.config.Workspace, Requests: requests(0),
		Of: failure.Of, Resource: failure.Resource, Missing: failure.Missing, Rejected: failure.Rejected,
	}
	if made := c.created(); s.Of.Name == "" && len(made) > 0 {
		s.Of = made[len(made)-1].Key()
	}
	if current.env != nil {
		s.Log = current.env.manager.output.String()
	}
	if current.admin == nil || finding.Of(failure.Err).Cause == suite.CauseBlocked {
		return s
	}
	if current.config.NeedsManager() {
		s.User = managerUser()
		s.Denied, _ = Refused(ctx, 0)
	}
	if clientset, err := kubernetes.NewForConfig(current.adminConfig); err == nil {
		s.Read(ctx, current.admin, clientset, gvk)
	}
	return s
}
