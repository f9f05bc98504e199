package env

import (
	"context"
	"errors"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// The resources of a [Failure].
const (
	Deployments = "deployments"
	Memcacheds  = "memcacheds"
	Services    = "services"
	Events      = "events"
)

// require fails the check if err is not nil.
func require(err error) {
	if err != nil {
		running().fail(Failure{Err: err})
	}
}

// fail ends the check for a reason. It turns the failure into a finding, and asks what explains it.
func (c *check) fail(failure Failure) {
	ginkgo.GinkgoHelper()
	if c.id == "" || c.result.State != "" {
		ginkgo.Fail(failure.Err.Error()) // not in a check, or after it has failed
	}
	ctx := context.Background()                        // the check's own may have expired
	f := explain(ctx, failure, findingOf(failure.Err)) // first, because the manager goes on sending requests
	late := failure.TimedOut || f.Late
	if why := givenUp(status()); why != nil {
		f, late = finding.Of(why), false // which explains whatever else is missing
	}
	if f.Cause == suite.CauseBlocked {
		c.result = suite.Result{State: suite.Blocked, BlockedBy: f.Seen}
		ginkgo.Fail(f.Error())
	}
	c.result = suite.Result{State: suite.Failed, Finding: f}
	if late {
		c.result.Load = busy()
	}
	c.result.Evidence = collectEvidence(ctx, f)
	ginkgo.Fail(f.Error())
}

// findingOf is what a check has found. A request of ours that the API server could not serve in time is the
// machine's fault: its flow control does not apply to us, so that no flood of the manager's can delay it.
func findingOf(err error) *finding.Finding {
	if f, ok := errors.AsType[*finding.Finding](err); ok {
		return f
	}
	if serversFault(err) {
		return finding.Machine("serve the requests of the checks", err)
	}
	return finding.Of(err)
}

// serversFault says that the API server could not do what was asked, whatever it was.
func serversFault(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code >= http.StatusInternalServerError
}
