package env

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega/format"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Unmet is what a matcher wanted and did not see. Gomega hands no more than a text to its fail handler, so a matcher
// that renders its failure message leaves this here: see [Report].
type Unmet struct {
	// Err is a finding, or what kept the matcher from one.
	Err error
	// Of is the object that was looked at, the zero value if there is no single one.
	Of types.NamespacedName
	// Resource is its resource: one of [Deployments], [Memcacheds], [Services] and [Events]; "" is none.
	Resource string
	// Missing says that there was no such object.
	Missing bool
	// Rejected says that the API server kept refusing what the manager wrote to the object, which ended the wait.
	Rejected bool
	// Final says that nothing that is rendered later explains the failure better.
	Final bool
}

// The resources whose findings [Fail] explains.
const (
	Deployments = "deployments"
	Memcacheds  = "memcacheds"
	Services    = "services"
	Events      = "events"
)

// reported is the last thing that was rendered.
var reported struct {
	sync.Mutex
	unmet *Unmet
}

// Report leaves what a failure message is about for [Fail], and returns the message.
func Report(u Unmet) string {
	reported.Lock()
	defer reported.Unlock()
	if reported.unmet == nil || !reported.unmet.Final {
		reported.unmet = &u
	}
	return u.Err.Error()
}

// TakeReport is what was reported last, nil when nothing was.
func TakeReport() *Unmet {
	reported.Lock()
	defer reported.Unlock()
	u := reported.unmet
	reported.unmet = nil
	return u
}

func init() {
	// Gomega calls it for each value that it shows, an error among them: Expect(err).To(Succeed()).
	format.RegisterCustomFormatter(func(value any) (string, bool) {
		if err, ok := value.(error); ok {
			reportError(err)
		}
		return "", false
	})
}

// reportError leaves an error that Gomega shows. Gomega shows what it wraps afterwards, which is less.
func reportError(err error) {
	reported.Lock()
	defer reported.Unlock()
	if u := reported.unmet; u == nil || !u.Final && !errors.Is(u.Err, err) {
		_, read := errors.AsType[readError](err)
		reported.unmet = &Unmet{Err: err, Final: read}
	}
}

// readError is an error of a poll: it says more than what was seen before it.
type readError struct{ error }

func (e readError) Unwrap() error { return e.error }

// Fail is the suite's fail handler for Gomega. It turns the failure into a finding, asks what explains it, and adds
// both to Ginkgo's report.
func Fail(message string, callerSkip ...int) {
	skip := 1
	if len(callerSkip) > 0 {
		skip += callerSkip[0]
	}
	failBecause(unmetIn(message), skip)
}

// unmetIn is what a failure message of Gomega's is about. What was reported counts if the message has its words.
func unmetIn(message string) Unmet {
	if u := TakeReport(); u != nil && strings.Contains(words(message), words(u.Err.Error())) {
		return *u
	}
	return Unmet{Err: errors.New(message)}
}

// words are a text's words, however Gomega has indented it.
func words(text string) string { return strings.Join(strings.Fields(text), " ") }

// require ends the check if err is not nil.
func require(err error) {
	ginkgo.GinkgoHelper()
	if err != nil {
		failBecause(Unmet{Err: err}, 1)
	}
}

func failWith(f *finding.Finding) {
	ginkgo.GinkgoHelper()
	failBecause(Unmet{Err: f}, 1)
}

func failBecause(u Unmet, skip int) {
	if checkID() == "" {
		ginkgo.Fail(u.Err.Error(), skip+1) // not in a check
	}
	ctx := context.Background()            // the check's own may have expired
	f := explain(ctx, u, findingOf(u.Err)) // first, because the manager goes on sending requests
	switch s := statusBeforeFailing(ctx); {
	case s.Gone != nil:
		f = s.Gone // explains whatever else is missing
	case s.Blocked != "":
		f = blocked(s.Blocked)
	}
	f = f.Bounded()
	ginkgo.AddReportEntry(suite.FindingEntry, f, ginkgo.ReportEntryVisibilityNever)
	if f.Cause != suite.CauseBlocked {
		_ = publish(failed) // the report has it all the same
		ginkgo.AddReportEntry(suite.EvidenceEntry, collectEvidence(ctx, f), ginkgo.ReportEntryVisibilityNever)
	}
	ginkgo.Fail(f.Error(), skip+1)
}

// findingOf is what a check has found. A request of ours that the API server could not serve in time is the
// machine's fault: its flow control does not apply to us, so that no flood of the manager's can delay it.
func findingOf(err error) *finding.Finding {
	if f, ok := errors.AsType[*finding.Finding](err); ok {
		return f
	}
	if full(err) {
		return finding.New("other", "an operator that makes what its Memcacheds need", "the cluster has no room for more, and it is new: your manager filled it")
	}
	if tooLarge(err) {
		return finding.New("other", "objects that can be stored, and edited by others", "what your types or your manager make is too large for that: %v", err)
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return finding.New("other", "objects that can be read in a moment", "the API server answered a check with more than %d MiB; does your definition have large defaults, or does your manager make many objects?", large.Limit>>20)
	}
	if serversFault(err) {
		return finding.Machine("serve the requests of the checks", err)
	}
	return finding.Of(err)
}

// TooMuchWork turns the API server's timeout at a request about the learner's definition into a finding, if the API server
// serves other requests at once. A definition of 1 KB can have a rule that it checks for minutes, or a column that it looks for
// in millions of places. Other errors it leaves alone.
func TooMuchWork(ctx context.Context, cause string, err error) error {
	if !apierrors.IsTimeout(err) || !servesOthers(ctx) {
		return err
	}
	return finding.New(cause, "a definition that takes the API server no more than a moment", "%v; at the same time it serves other requests at once", err)
}

// controls is how many requests [servesOthers] sends.
const controls = 9

// servesOthers says whether the API server does as it should what has nothing to do with the learner: more than half of a few
// writes, which it checks and does not store, have to be answered promptly.
func servesOthers(ctx context.Context) bool {
	prompt := 0
	for range controls {
		control := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, GenerateName: "control-"}}
		asked := time.Now()
		if err := current.admin.Create(ctx, control, client.DryRunAll); err == nil && time.Since(asked) < promptly {
			prompt++
		}
	}
	return prompt > controls/2
}

// full says that etcd has no space left, or that there is no address for another Service: answers that the API server gives to
// everybody.
func full(err error) bool {
	return serversFault(err) && (strings.Contains(err.Error(), "database space exceeded") || strings.Contains(err.Error(), "range is full"))
}

// tooLarge says that an object does not fit into etcd. Those of the checks do, until a learner's types or manager add to them.
func tooLarge(err error) bool {
	return serversFault(err) && (strings.Contains(err.Error(), "request is too large") || strings.Contains(err.Error(), "message larger than max"))
}

// serversFault says that the API server could not do what was asked, whatever it was.
func serversFault(err error) bool {
	status, ok := errors.AsType[*apierrors.StatusError](err)
	return ok && status.ErrStatus.Code >= http.StatusInternalServerError
}
