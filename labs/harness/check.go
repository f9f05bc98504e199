package harness

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/example/operator-lab/labs/internal/finding"
)

const (
	labLabel = "lab:"
	// CheckLabel begins the Ginkgo label that carries a check's id.
	CheckLabel = "check:"
	// FindingEntry is the name of the Ginkgo report entry that carries a finding as JSON.
	FindingEntry = "finding"
)

// Lab declares the checks of lab n. Use it in a package variable of the lab's package.
func Lab(n int, checks func()) bool {
	return ginkgo.Describe(fmt.Sprintf("Lab %d", n), ginkgo.Label(fmt.Sprintf("%s%d", labLabel, n)), func() {
		ginkgo.BeforeEach(func(ctx ginkgo.SpecContext) {
			ginkgo.DeferCleanup(func() error {
				suite.place.leave()
				return tell(ended)
			})
			if by := unasked(status(""), ginkgo.CurrentSpecReport()); by != "" {
				Require(blocked(by))
			}
			if suite.env != nil {
				Require(suite.env.restore(ctx))
			}
			Require(tell(begun))
		})
		checks()
	})
}

// First is a decorator for checks that explain others: they run before those.
const First = ginkgo.SpecPriority(10)

// Long is for a check that takes longer than others, mostly waiting: those are asked meanwhile.
const Long = ginkgo.SpecPriority(5)

// Late is for a check that takes much and would be in vain if another one fails: then it is not asked.
const Late = ginkgo.SpecPriority(-1)

// Check declares one check. id stands in lab.yaml; body and decorators are Ginkgo's. The check is
// bounded by [CheckLimit] unless it brings its own NodeTimeout. One that failed last time begins first, unless it is
// [Late].
func Check(id string, args ...any) bool {
	args = append([]any{ginkgo.Label(CheckLabel + id), ginkgo.NodeTimeout(CheckLimit)}, args...)
	config, _ := readConfig() // what is wrong with it is said by SetUp
	if slices.Contains(config.Failing, id) && !slices.Contains(args, any(Late)) {
		args = append(args, First)
	}
	return ginkgo.It(id, args...)
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

// Require ends the check if err is not nil. A finding in err's chain, or one made of its text, goes
// into the report.
func Require(err error) {
	ginkgo.GinkgoHelper()
	if err == nil {
		return
	}
	f := findingOf(err)
	if s := statusBeforeFailing(context.Background()); s.Gone != nil {
		f = s.Gone // explains whatever else is missing
	} else if s.Blocked != "" {
		f = blocked(s.Blocked)
	}
	ginkgo.AddReportEntry(FindingEntry, f, ginkgo.ReportEntryVisibilityNever)
	if f.Cause != CauseBlocked {
		_ = tell(failed) // the report has it all the same
		ginkgo.AddReportEntry(EvidenceEntry, collectEvidence(context.Background(), f), ginkgo.ReportEntryVisibilityNever)
	}
	ginkgo.Fail(f.Error())
}

// ID is the id of the check that is running.
func ID() string {
	for _, label := range ginkgo.CurrentSpecReport().Labels() {
		if id, ok := strings.CutPrefix(label, CheckLabel); ok {
			return id
		}
	}
	return ""
}

// Rand is the running check's source. What it gives depends on the run's seed and the check's id alone,
// so that a printed seed replays the same world in any order of checks.
func Rand() *rand.Rand {
	if id := ID(); suite.randOf != id {
		suite.randOf, suite.rand = id, RandOf(suite.config.Seed)
	}
	return suite.rand
}

// RandOf is the source that [Rand] gives at the beginning of the running check in a run with this seed.
func RandOf(seed int64) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(ID()))
	return rand.New(rand.NewPCG(uint64(seed), h.Sum64()))
}

// Run is the configuration of this run.
func Run() Config { return suite.config }

// stopped marks an error that no waiting can mend.
type stopped struct{ error }

func (s stopped) Unwrap() error { return s.error }

// Stop makes [Until] end at once: waiting longer would not help.
func Stop(err error) error { return stopped{err} }

// contextError turns the end of ctx into the last thing a wait saw, which says more.
func contextError(ctx context.Context, last error) error {
	if last != nil {
		return last
	}
	return ctx.Err()
}
