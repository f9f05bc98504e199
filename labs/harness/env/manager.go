package env

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/onsi/ginkgo/v2"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilwait "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/loopback"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
)

// ManagerProcess is the learner's program as a process. It can be stopped, killed and started again.
type ManagerProcess struct {
	proxy           *apiproxy.Proxy
	flags           []string // that it is started with
	home            string
	kubeconfig      string
	metrics, health string // addresses on loopback
	output          logFile
	registry        *registry.Registry         // that it is told of at its next start, nil for none
	run             atomic.Pointer[managerRun] // nil while nobody wants it to run
}

// managerRun is the manager from one start to its end.
type managerRun struct {
	cmd     *exec.Cmd
	kill    context.CancelFunc
	image   string // of the operand, as it was told
	began   time.Time
	since   int           // requests that came before it
	workers int           // lines of [workersLine] that came before it
	ended   chan struct{} // closed when it has, by itself or not
	lasted  time.Duration
}

// newManager makes a manager that is not started yet.
func newManager(proxy *apiproxy.Proxy) (*ManagerProcess, error) {
	home, err := os.MkdirTemp(current.config.Scratch, "manager-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the manager: %w", err)
	}
	addresses, err := loopback.Free(2)
	if err != nil {
		return nil, err
	}
	log := "manager.log"
	if n := ginkgo.GinkgoParallelProcess(); n > 1 {
		log = fmt.Sprintf("manager-%d.log", n)
	}
	output, err := openLog(filepath.Join(current.config.Artifacts, log))
	if err != nil {
		return nil, err
	}
	m := &ManagerProcess{
		proxy: proxy, home: home, kubeconfig: filepath.Join(home, "kubeconfig"), metrics: addresses[0], health: addresses[1], output: output,
	}
	m.flags = m.knownFlags()
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: proxy.URL(), CertificateAuthorityData: proxy.CA()}
	config.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: proxy.Token()}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "manager"}
	config.CurrentContext = "lab"
	err = clientcmd.WriteToFile(*config, m.kubeconfig)
	if err == nil {
		err = os.Chmod(m.kubeconfig, 0o644) // for the manager's user, who alone can enter the home
	}
	if err != nil {
		return nil, fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return m, nil
}

// command prepares the learner's program. It sees PATH, its home, TMPDIR and env alone, and its whole process tree ends with it,
// with ctx, and with this process. It runs as a user of its own when the lab runs as root.
func (m *ManagerProcess) command(ctx context.Context, env []string, args ...string) (*exec.Cmd, error) {
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "TMPDIR=" + m.home}, env...)
	cmd, err := process.Program(ctx, current.config.Supervisor, m.home, env, current.config.Manager, args...)
	if err != nil {
		return nil, err
	}
	cmd.WaitDelay = StopTimeout
	return cmd, nil
}

const (
	// helpLimit bounds the learner's `-h`. A program that does not answer gets no flags: it may be one that knows none, and is
	// judged by what it does.
	helpLimit = 5 * time.Second
	// helpSize is how much of the answer is read. A manager of Kubebuilder's says 4 KB.
	helpSize = 64 << 10
)

// knownFlags keep the manager on loopback, and off the leader election that ends it outside a cluster. They are those that the
// program lists as its own: an operator is free to have none.
func (m *ManagerProcess) knownFlags() (known []string) {
	ctx, cancel := context.WithTimeout(context.Background(), helpLimit)
	defer cancel()
	help := &process.Tail{Limit: helpSize}
	cmd, err := m.command(ctx, nil, "-h")
	if err != nil {
		return nil // nor can it be started
	}
	cmd.Stdout, cmd.Stderr = help, help
	_ = cmd.Run()
	for _, flag := range []string{
		"health-probe-bind-address=" + m.health, "metrics-bind-address=" + m.metrics, "metrics-secure=false", "leader-elect=false",
	} {
		name, _, _ := strings.Cut(flag, "=")
		if regexp.MustCompile(`(?m)^\s+-{1,2}` + name + `(\s|$)`).MatchString(help.String()) {
			known = append(known, "--"+flag)
		}
	}
	return known
}

// start runs the manager with the given operand image, and returns when it knows what there is: before that, that it does nothing
// shows nothing. A program that does not work is a finding of [ManagerProcess.gone], not an error.
func (m *ManagerProcess) start(ctx context.Context, image string) error {
	env := []string{"KUBECONFIG=" + m.kubeconfig, "MEMCACHED_IMAGE=" + image, "ENABLE_WEBHOOKS=false"}
	if m.registry != nil {
		env = append(env, "REGISTRY_URL="+m.registry.URL())
	}
	alive, kill := context.WithCancel(context.Background())
	cmd, err := m.command(alive, env, m.flags...)
	if err == nil {
		cmd.Stdout, cmd.Stderr = m.output.File, m.output.File
		err = cmd.Start()
	}
	if err != nil {
		kill()
		return finding.Machine("start the manager", err)
	}
	r := &managerRun{
		cmd: cmd, kill: kill, image: image, began: time.Now(), since: m.proxy.Count(), workers: m.workersLines(), ended: make(chan struct{}),
	}
	m.run.Store(r)
	note(trace.You, "started your manager")
	go func() {
		_ = cmd.Wait()
		r.lasted = time.Since(r.began)
		if m.run.Load() == r {
			note(trace.Manager, "ended by itself ("+cmd.ProcessState.String()+")")
		}
		close(r.ended)
	}()
	m.awaitCaches(ctx, r)
	return nil
}

// workersLine is what controller-runtime's log says when the caches are filled.
const workersLine = "Starting workers"

func (m *ManagerProcess) workersLines() int { return len(m.output.Lines(workersLine)) }

// awaitCaches returns when the manager knows what there is, so that the checks' objects are news to it. What a manager
// finds when it starts, controller-runtime's queue serves after all news, and while many checks make some, a slow one
// does not come to it (https://github.com/kubernetes-sigs/controller-runtime/issues/3496). It waits for [silenceTimeout] at
// most; what is wrong with a manager that fails, the checks report.
func (m *ManagerProcess) awaitCaches(ctx context.Context, r *managerRun) {
	_ = utilwait.PollUntilContextTimeout(ctx, pollInterval, silenceTimeout, true, func(context.Context) (bool, error) {
		select {
		case <-r.ended:
			return true, nil
		default:
			return m.workersLines() > r.workers || listensSince(m.proxy.Since(r.since), time.Now().Add(-cacheTimeout)), nil
		}
	})
}

// listensSince says whether a manager had asked for Memcacheds by then.
func listensSince(sent []apiproxy.Request, then time.Time) bool {
	return slices.ContainsFunc(sent, func(r apiproxy.Request) bool {
		return r.Group == suite.Group && (r.Verb == "list" || r.Verb == "watch") && r.Time.Before(then)
	})
}

// stop asks the manager to end, as Kubernetes does, and kills its process tree when it does not.
func (m *ManagerProcess) stop(ctx context.Context) {
	r := m.run.Swap(nil)
	if r == nil {
		return
	}
	note(trace.You, "stopped your manager")
	ctx, cancel := context.WithTimeout(ctx, StopTimeout)
	defer cancel()
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // an error: it has ended
	select {
	case <-r.ended:
	case <-ctx.Done():
	}
	m.end(r)
}

// Kill ends the manager's whole process tree at once and without a warning, as a node does that loses its power. Restart brings
// back the same manager.
func (m *ManagerProcess) Kill() {
	if r := m.run.Swap(nil); r != nil {
		note(trace.You, "killed your manager")
		m.end(r)
	}
}

// end ends what is left of a run. It deletes the leases of a manager that elects a leader whatever its flags say: the next one would
// wait until the lease of the dead process expires, after 15 seconds. What goes wrong here only costs that wait.
func (m *ManagerProcess) end(r *managerRun) {
	r.kill()
	<-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), releaseTimeout)
	defer cancel()
	for _, q := range m.proxy.Since(r.since) {
		if asksForLease(q) && q.Created() {
			_ = current.admin.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: q.Object}})
		}
	}
}

// releaseTimeout bounds how long leases are deleted.
const releaseTimeout = 2 * time.Second

func asksForLease(r apiproxy.Request) bool {
	return r.Group == coordinationv1.GroupName && r.Resource == "leases"
}

// Restart stops the manager, if it runs, and starts it with the given operand image.
func (m *ManagerProcess) Restart(ctx context.Context, image string) error {
	m.stop(ctx)
	return m.start(ctx, image)
}

// WhileStopped does something while no manager runs, and starts it again.
func (m *ManagerProcess) WhileStopped(ctx context.Context, act func() error) error {
	m.stop(ctx)
	acted := act()
	return errors.Join(acted, m.start(ctx, current.config.MemcachedImage))
}

// runs says whether somebody wants the manager to run with the operand's image. It may have ended by itself since.
func (m *ManagerProcess) runs(image string) bool {
	r := m.run.Load()
	return r != nil && r.image == image
}

// gone is the finding about a manager that cannot do its work: it ended although nobody asked it to, or it runs and has asked the
// API server for nothing since it was started.
func (m *ManagerProcess) gone() *finding.Finding {
	r := m.run.Load()
	if r == nil {
		return nil
	}
	select {
	case <-r.ended:
		return finding.New(suite.CauseManagerExited, "the manager goes on running",
			"it ended by itself (%s) %s after its start; %s", r.cmd.ProcessState, r.lasted.Round(time.Millisecond), lastLine(m.output.String()))
	default:
	}
	if time.Since(r.began) < silenceTimeout || m.proxy.Count() > r.since {
		return nil
	}
	return finding.New(suite.CauseManagerSilent, "the manager reads Memcacheds from the API server",
		"it has been running for %s and has not sent one request: does it start a controller?", silenceTimeout)
}

// lastLine is what a manager that ended said about it.
func lastLine(output string) string {
	if p := diagnostics.FindPanic(output, current.config.Workspace, nil); p != "" {
		return "it panicked: " + p
	}
	if lines := diagnostics.Trouble(output, nil, 1); len(lines) > 0 {
		return "its last complaint: " + lines[0]
	}
	if lines := diagnostics.Last(output, nil, 1); len(lines) > 0 {
		return "its last words: " + lines[0]
	}
	return "it printed nothing"
}

// counter is a line of the metrics with which controller-runtime counts passes, by their result.
var counter = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{([^}]*)\} ([0-9.e+]+)$`)

// Passes is how often a manager has called Reconcile, as it counts itself. A manager that does not tell has none.
type Passes struct {
	// All counts each call.
	All int
	// Again counts those that asked for another call without an error (RequeueAfter, Requeue). controller-runtime gives
	// them results of their own, "requeue_after" and "requeue".
	Again int
}

// PassesDuring are the passes that the manager made while act ran.
func (m *ManagerProcess) PassesDuring(ctx context.Context, act func() error) (Passes, error) {
	before, counted := m.passes(ctx)
	if err := act(); err != nil || !counted {
		return Passes{}, err
	}
	after, _ := m.passes(ctx)
	return Passes{All: after.All - before.All, Again: after.Again - before.Again}, nil
}

// passes adds up the manager's own count.
func (m *ManagerProcess) passes(ctx context.Context) (passes Passes, counted bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return passes, false
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return passes, false
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	lines := counter.FindAllStringSubmatch(string(text), -1)
	for _, line := range lines {
		n, _ := strconv.ParseFloat(line[2], 64)
		passes.All += int(n)
		if strings.Contains(line[1], `result="requeue`) {
			passes.Again += int(n)
		}
	}
	return passes, len(lines) > 0
}
