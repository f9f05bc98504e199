package env

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/ginkgo/v2/types"
	"github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Long is the priority of a check that mostly waits. It begins early. When another check has failed, it does not begin, or is
// given up.
const Long = ginkgo.SpecPriority(5)

// first is the priority of opening checks, the first of each lab. When one fails, the other checks of its lab are given up.
const first = ginkgo.SpecPriority(10)

// Lab decorates the container with the checks of lab n.
func Lab(n int) ginkgo.Labels { return ginkgo.Label(fmt.Sprintf("%s%d", suite.LabLabel, n)) }

// Check decorates the spec of one check. id is its id in lab.yaml; the first check there begins before all others. kind may be
// [Long]. A check may take [CheckLimit].
func Check(id string, kind ...ginkgo.SpecPriority) []any {
	decorators := []any{ginkgo.Label(suite.CheckLabel + id), ginkgo.NodeTimeout(CheckLimit)}
	config, _ := suite.ReadConfig() // here, because Ginkgo needs priorities before anything runs; without a run there is no order
	for _, opening := range config.Opening {
		if opening == id {
			kind = append(kind, first)
		}
	}
	for _, k := range kind {
		decorators = append(decorators, k)
	}
	return decorators
}

// check is one check while it runs in this process.
type check struct {
	id         string
	lab        int
	long       bool
	inside     bool
	rand       *rand.Rand
	polled     error        // of the last read by [Polled]
	result     suite.Result // once it has failed
	memcached  Memcached    // that it created last
	namespaces atomic.Int32 // how many it has; atomic, because the goroutine that waits for the manager's end reads it, too
}

// newCheck makes the check of a spec. Its random values depend on the run's seed and its id alone: a seed gives the same values
// in any order of checks.
func newCheck(spec types.SpecReport, seed int64) *check {
	id := label(spec.Labels(), suite.CheckLabel)
	n, _ := strconv.Atoi(label(spec.Labels(), suite.LabLabel))
	h := fnv.New64a()
	h.Write([]byte(id))
	return &check{
		id: id, lab: n, long: spec.SpecPriority == int(Long), inside: slices.Contains(spec.Labels(), insideLabel),
		rand: rand.New(rand.NewPCG(uint64(seed), h.Sum64())),
	}
}

// running is the check that runs, or the one that ran last.
func running() *check {
	if c := current.check.Load(); c != nil {
		return c
	}
	return &check{}
}

// BeginCheck prepares the manager for a check. The suite calls it before each of them.
func BeginCheck(ctx context.Context) {
	ginkgo.GinkgoHelper()
	c := newCheck(ginkgo.CurrentSpecReport(), current.config.Seed)
	current.check.Store(c)
	gomega.Default = NewGomega(c.fail)
	if _, decisive := c.otherFailures(); decisive != "" {
		require(blocked(decisive))
	}
	switch {
	case current.env == nil:
	case c.inside:
		current.env.manager.stop(ctx)
	default:
		require(current.env.restore(ctx, c.lab))
	}
}

// EndCheck fails a check that has passed although its manager exited: without a manager, nothing can go wrong. The suite calls
// it after each check.
func EndCheck() {
	ginkgo.GinkgoHelper()
	if f := gone(); f != nil && !ginkgo.CurrentSpecReport().Failed() && running().memcached.Name != "" {
		require(f)
	}
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
	appendResult(result)
}

// appendResult adds a result to the file of the run, if the lab command runs the suite. An error is dropped: the verdict reports a
// check without a result.
func appendResult(result suite.Result) {
	if result.Run = current.shared.Run; current.config.Artifacts != "" {
		_ = suite.Append(filepath.Join(current.config.Artifacts, suite.ResultsFile), result)
	}
}

// label is what follows prefix in the label that begins with it.
func label(labels []string, prefix string) string {
	for _, label := range labels {
		if rest, ok := strings.CutPrefix(label, prefix); ok {
			return rest
		}
	}
	return ""
}

// Run is the configuration of this run.
func Run() suite.Config { return current.config }

// The resources of a [Failure].
const (
	Deployments = "deployments"
	Memcacheds  = "memcacheds"
	Services    = "services"
	Events      = "events"
)

// require fails the check if err is not nil.
func require(err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		running().fail(Failure{Err: err})
	}
}

// fail ends the check. It turns the failure into a finding, and adds what may explain it.
func (c *check) fail(failure Failure) {
	ginkgo.GinkgoHelper()
	if c.id == "" || c.result.State != "" {
		ginkgo.Fail(failure.Err.Error()) // not in a check, or after it has failed
	}
	if c.polled != nil {
		failure = Failure{Err: c.polled, TimedOut: failure.TimedOut} // the last read failed; failure is about the value before it
	}
	seen := c.look(failure) // first, because the manager goes on sending requests
	f := seen.Cause(findingOf(failure.Err))
	late := failure.TimedOut || f.Late
	if _, why := status(); why != nil {
		f = finding.Of(why) // it explains whatever else is missing
		late = f.Late
	}
	if f.Cause == suite.CauseBlocked {
		c.result = suite.Result{State: suite.Blocked, BlockedBy: f.Seen}
		ginkgo.Fail(f.Error())
	}
	c.result = suite.Result{State: suite.Failed, Finding: f}
	if late {
		c.result.Load = busy()
	}
	seen.Keep(filepath.Join(current.config.Artifacts, c.id))
	c.result.Evidence = seen.Explain(f)
	ginkgo.Fail(f.Error())
}

// look reads what may explain a failure of the check, for [diagnosticsTimeout] at most. It leaves out what it cannot read. It
// reads nothing for a check that is given up.
func (c *check) look(failure Failure) *diagnostics.Snapshot {
	ctx, cancel := context.WithTimeout(context.Background(), diagnosticsTimeout) // the check's own may have expired
	defer cancel()
	s := &diagnostics.Snapshot{
		Namespaces: c.ownNamespaces(), Quota: quotaName, Workspace: current.config.Workspace, Requests: requests(0),
		Of: cmp.Or(failure.Of, c.memcached.Key()), Resource: failure.Resource, Missing: failure.Missing, Rejected: failure.Rejected,
	}
	if c.inside {
		s.Namespaces = append(s.Namespaces, current.deployed.namespace)
	} else if current.env != nil {
		s.Log = current.env.manager.output.String()
	}
	if current.admin == nil || finding.Of(failure.Err).Cause == suite.CauseBlocked {
		return s
	}
	if current.config.NeedsManager() {
		s.User = managerUser()
		s.Denied, _ = Denied(ctx)
	}
	s.Read(ctx, current.admin, current.clientset, gvk)
	return s
}

// findingOf turns an error into a finding. It blames the machine if the API server could not serve a request of the checks in
// time: flow control exempts the administrator, so no number of requests from the manager can delay ours.
func findingOf(err error) *finding.Finding {
	if f := finding.Of(err); f.Cause != finding.CauseOther || !serversFault(err) {
		return f
	} else if f := webhookFailed(err); f != nil {
		return f
	}
	return finding.Machine("serve the requests of the checks", err)
}

// serversFault says whether the API server failed for a reason of its own.
func serversFault(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code >= http.StatusInternalServerError
}

// ownLoad is what a run itself adds: managers, the API server and etcd. Three verdicts in a row made a load average of 6.8.
const ownLoad = 8

// busy is this machine's load if more than two programs for each processor want to run beside our own, and 0 otherwise. The load is
// the load average of the last minute, or the number of programs that want to run now if that is less: what ran before a check does
// not matter. Without /proc/loadavg it is 0.
func busy() float64 {
	data, _ := os.ReadFile("/proc/loadavg")
	var one, five, fifteen, now float64
	_, _ = fmt.Sscanf(string(data), "%f %f %f %f/", &one, &five, &fifteen, &now)
	if load := min(one, now); load > ownLoad+2*float64(runtime.NumCPU()) {
		return load
	}
	return 0
}
