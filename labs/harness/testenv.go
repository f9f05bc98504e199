package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/trace"
)

const (
	// CauseManagerExited is the cause when the learner's manager ended by itself, or could not be started.
	CauseManagerExited = "manager-exited"
	// CauseManagerSilent is the cause when the manager runs and asks the API server for nothing.
	CauseManagerSilent = "manager-silent"
)

// testEnv is what a Ginkgo process has for itself: a process of the learner's manager, and the proxy that it goes through.
// A check may stop and restart it, and disturb the proxy; the checks of other processes do not notice.
type testEnv struct {
	proxy    *apiproxy.Proxy
	manager  *Manager
	activity *activityMonitor
	trace    *trace.Watcher
	forget   context.CancelFunc // ends the activity monitor
	workers  int                // how often the manager's log said [workersLine] before its last start
}

// openTestEnv starts the proxy, and the manager with its identity, and returns when the manager knows what there is. known is
// what its program has said already, nil when nobody has asked.
func openTestEnv(ctx context.Context, w *trace.Watcher, known *program) (*testEnv, error) {
	process, total := ginkgo.GinkgoParallelProcess(), processes()
	proxy, err := apiproxy.Start(suite.adminConfig, admissionRule(),
		namespaceFilter(hiddenFrom(process, total, suite.shared.Run, suite.config.Checks)))
	if err != nil {
		return nil, err
	}
	watching, forget := context.WithCancel(context.Background())
	e := &testEnv{proxy: proxy, trace: w, activity: newActivityMonitor(proxy.Since, answered), forget: forget}
	go e.activity.run(watching)
	e.manager, err = newManager(proxy, suite.shared.Token, managerLog(process), known)
	if err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	e.manager.starts, e.manager.note = e.restarts, e.note
	if err := e.manager.Start(suite.config.MemcachedImage); err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	e.awaitCaches(ctx)
	return e, nil
}

// processes is how many Ginkgo processes share the checks of this run.
func processes() int {
	c, _ := ginkgo.GinkgoConfiguration()
	return c.ParallelTotal
}

// awaitCaches returns when the manager knows what there is, so that the checks' objects are news to it. What a manager
// finds when it starts, controller-runtime's queue serves after all news, and while many checks make some, a slow one
// does not come to it (https://github.com/kubernetes-sigs/controller-runtime/issues/3496). A manager that ends, or is
// not so far when a silent one would be given up, gets its checks all the same: they say what is wrong with it.
func (e *testEnv) awaitCaches(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, SilenceBudget)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for listening := time.Duration(0); e.gone() == nil && !e.knows(listening); {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if e.activity.listens() {
			listening += pollInterval
		}
	}
}

// restore brings back the manager as it was started first, for a check whose predecessor has stopped it or started it with
// another image. One that ended by itself stays away: the checks say so.
func (e *testEnv) restore(ctx context.Context) error {
	if e.manager.runs(suite.config.MemcachedImage) {
		return nil
	}
	return Restart(ctx, suite.config.MemcachedImage)
}

// answered asks the API server for something small.
func answered(ctx context.Context) error {
	return suite.admin.Get(ctx, client.ObjectKey{Name: metav1.NamespaceDefault}, &corev1.Namespace{})
}

// workersLine is what controller-runtime's log says when the caches are filled.
const workersLine = "Starting workers"

// knows says whether the manager has filled its caches, after it has asked for what they hold for so long.
func (e *testEnv) knows(listening time.Duration) bool {
	return e.workersLines() > e.workers || listening > CacheBudget
}

func (e *testEnv) workersLines() int { return len(e.manager.output.Lines(workersLine)) }

// restarts is told that the manager is about to be started.
func (e *testEnv) restarts() {
	e.activity.restart()
	e.workers = e.workersLines()
}

// note adds what happened to the manager to the trace of the running check, in whichever of its namespaces a reader looks.
func (e *testEnv) note(actor, text string) {
	for _, namespace := range suite.place.all() {
		e.trace.Note(namespace, actor, text)
	}
}

// restrictPods keeps the Pods of a manager that nobody trusts to its own cluster; a trusted one may do everything that
// it has a right to.
func restrictPods(ctx context.Context) error {
	if suite.config.Launcher == nil || !suite.config.RealPods {
		return nil
	}
	return apiproxy.InstallPodPolicy(ctx, suite.admin, suite.config.MemcachedImage)
}

// admissionRule does so for its requests.
func admissionRule() apiproxy.Rule {
	if suite.config.Launcher == nil {
		return nil
	}
	return apiproxy.AdmissionRule
}

// gone is the finding about a manager that cannot do its work: it ended, or it runs and has asked the
// API server for nothing since it was started.
func (e *testEnv) gone() *finding.Finding {
	if f := e.manager.gone(); f != nil {
		return f
	}
	if e.manager.Running() < SilenceBudget || e.proxy.Count() > e.manager.requestsBefore() {
		return nil
	}
	return finding.New(CauseManagerSilent, "the manager reads Memcacheds from the API server",
		"it has been running for %s and has not sent one request: does it start a controller?", SilenceBudget)
}

// idle is for how long nothing has happened in the namespace while the manager was running.
func (e *testEnv) idle(namespace string) time.Duration {
	if namespace == "" || e.manager.Running() == 0 {
		return 0
	}
	return e.activity.idle(namespace)
}

// conflicts says whether the manager, which was just started and has sent so much, cannot run beside those of the other
// processes: it ended, most likely over a port that both want, or it asks for the lease that another one holds.
func (e *testEnv) conflicts(sent []apiproxy.Request) bool {
	return e.manager.gone() != nil || slices.ContainsFunc(sent, func(r apiproxy.Request) bool {
		return r.Group == "coordination.k8s.io" && r.Resource == "leases"
	})
}

// close ends the manager and the proxy, and adds what the manager sent to the trace.
func (e *testEnv) close(ctx context.Context) error {
	defer func() { e.trace.Add(e.proxy.Since(0), e.proxy.Tallies()) }()
	e.forget()
	var stopped error
	if e.manager != nil {
		stopped = e.manager.Stop(ctx)
	}
	return errors.Join(stopped, e.proxy.Stop())
}

// TheManager is the learner's manager, which the running check has for itself.
func TheManager() (*Manager, error) {
	if suite.env == nil {
		return nil, errors.New("this run has no manager")
	}
	return suite.env.manager, nil
}

// oneProcessFile is made in the artifacts of a run when a manager cannot run beside those of other processes.
const oneProcessFile = "one-process"

// RunsOnlyOnce says whether a run of several processes was given up because the manager cannot run several times on one
// machine, and forgets what that run has written: its checks have to be judged by one process.
func RunsOnlyOnce(artifacts string) (bool, error) {
	if err := os.Remove(filepath.Join(artifacts, oneProcessFile)); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			return false, nil
		}
		return false, fmt.Errorf("judge with one process: %w", err)
	}
	logs, err := filepath.Glob(filepath.Join(artifacts, ManagerLogs))
	for _, file := range append(logs, filepath.Join(artifacts, statusFile), filepath.Join(artifacts, trace.File)) {
		if removed := os.Remove(file); removed != nil && !errors.Is(removed, os.ErrNotExist) {
			err = errors.Join(err, removed)
		}
	}
	if err != nil {
		return false, fmt.Errorf("judge with one process: %w", err)
	}
	return true, nil
}

// giveUp has the whole run end, so that its checks are judged by one process.
func giveUp() error {
	file := filepath.Join(suite.config.Artifacts, oneProcessFile)
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return fmt.Errorf("judge with one process: %w", err)
	}
	ginkgo.AbortSuite("the manager cannot run several times on one machine")
	return nil
}
