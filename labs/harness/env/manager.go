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
	proxy       *apiproxy.Proxy
	flags       []string // of its command line
	home        string
	kubeconfig  string
	metrics     string // the address of its metrics
	webhooks    string // that of its webhooks, "" if no lab of the run has any
	certificate []byte // which clients of its webhooks have to trust, as PEM
	output      logFile
	settings    settings                   // of its next start
	run         atomic.Pointer[managerRun] // nil while it is stopped; a manager that ended by itself keeps its run
}

// settings are what the labs of a run differ in.
type settings struct {
	registry *registry.Registry // whose address the manager gets, nil for none
	webhooks bool               // whether it serves its webhooks
	watched  string             // the namespaces that it is told to watch, "" for all
}

// managerRun is the manager from one start to its end.
type managerRun struct {
	cmd    *exec.Cmd
	kill   context.CancelFunc
	image  string // the operand's, in its environment
	began  time.Time
	since  int           // how many requests there were before it
	ended  chan struct{} // closed when the process has ended, by itself or not
	lasted time.Duration // set before ended is closed
}

// newManager makes a manager that is not started yet. Its kubeconfig has the proxy's address and the token.
func newManager(proxy *apiproxy.Proxy, token string) (*ManagerProcess, error) {
	home, err := os.MkdirTemp(current.config.Scratch, "manager-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the manager: %w", err)
	}
	addresses, err := loopback.Free(3)
	if err != nil {
		return nil, err
	}
	output, err := openLog(filepath.Join(current.config.Artifacts, fmt.Sprintf("manager-%d.log", ginkgo.GinkgoParallelProcess())))
	if err != nil {
		return nil, err
	}
	m := &ManagerProcess{proxy: proxy, home: home, kubeconfig: filepath.Join(home, "kubeconfig"), metrics: addresses[0], output: output}
	var serving []string
	if len(current.config.Webhooks) > 0 {
		if serving, err = m.serveWebhooks(addresses[2]); err != nil {
			return nil, err
		}
	}
	m.flags = m.knownFlags(append(serving,
		"health-probe-bind-address="+addresses[1], "metrics-bind-address="+m.metrics, "metrics-secure=false", "leader-elect=false")...)
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: proxy.URL(), CertificateAuthorityData: proxy.CA()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"manager": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "manager"}},
		CurrentContext: "lab",
	}, m.kubeconfig)
	if err == nil {
		err = os.Chmod(m.kubeconfig, 0o644) // for the manager's user; nobody else can enter the home
	}
	if err != nil {
		return nil, fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return m, nil
}

// command prepares the learner's program. Its environment has PATH, HOME, TMPDIR and env, and nothing else. Its whole process tree
// ends with it, with ctx, and with this process. It runs as a user of its own if the lab runs as root.
func (m *ManagerProcess) command(ctx context.Context, env []string, args ...string) (*exec.Cmd, error) {
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + m.home, "TMPDIR=" + m.home}, env...)
	cmd, err := process.Program(ctx, current.config.Supervisor, m.home, env, current.config.Manager, args...)
	if err == nil {
		cmd.WaitDelay = StopTimeout
	}
	return cmd, err
}

// helpLimit is how long the learner's program may take to print its help, also on a machine that is busy. A program that prints none gets no flags.
const helpLimit = 15 * time.Second

// knownFlags are those of the wanted flags that are in the program's help: an operator need not have any. They have the manager
// listen on loopback only, and turn off leader election, which cannot work outside a cluster.
func (m *ManagerProcess) knownFlags(wanted ...string) (known []string) {
	ctx, cancel := context.WithTimeout(context.Background(), helpLimit)
	defer cancel()
	var help []byte
	if cmd, err := m.command(ctx, nil, "-h"); err == nil {
		help, _ = cmd.CombinedOutput()
	}
	for _, flag := range wanted {
		name, _, _ := strings.Cut(flag, "=")
		if regexp.MustCompile(`(?m)^\s+-{1,2}` + name + `(\s|$)`).Match(help) {
			known = append(known, "--"+flag)
		}
	}
	return known
}

// start runs the manager with an image of the operand. It returns when the manager's caches are filled, after [silenceTimeout] at
// most. Nobody can judge an idle manager before that. The wait also keeps checks from making changes: controller-runtime's queue
// serves changes before the objects of the first list, so a slow manager would come to these too late
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3496). If the program ends, [ManagerProcess.gone] reports it; the
// error is only about the machine.
func (m *ManagerProcess) start(ctx context.Context, image string) error {
	env := []string{"KUBECONFIG=" + m.kubeconfig, "MEMCACHED_IMAGE=" + image}
	if !m.settings.webhooks {
		env = append(env, "ENABLE_WEBHOOKS=false")
	}
	if m.settings.registry != nil {
		env = append(env, "REGISTRY_URL="+m.settings.registry.URL())
	}
	if m.settings.watched != "" {
		env = append(env, "WATCH_NAMESPACE="+m.settings.watched)
	}
	workers := len(m.output.Lines(workersLine))
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
	r := &managerRun{cmd: cmd, kill: kill, image: image, began: time.Now(), since: m.proxy.Count(), ended: make(chan struct{})}
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
	_ = utilwait.PollUntilContextTimeout(ctx, 2*GomegaPollInterval, silenceTimeout, true, func(context.Context) (bool, error) {
		select {
		case <-r.ended:
			return true, nil
		default:
			filled := m.proxy.Count() > r.since && time.Since(r.began) > cacheTimeout
			return filled || len(m.output.Lines(workersLine)) > workers, nil
		}
	})
	return nil
}

// workersLine is what controller-runtime logs when the caches are filled.
const workersLine = "Starting workers"

// stop sends SIGTERM, as Kubernetes does, and kills what is left of the process tree after [StopTimeout] at most.
func (m *ManagerProcess) stop(ctx context.Context) {
	r := m.run.Swap(nil)
	if r == nil {
		return
	}
	note(trace.You, "stopped your manager")
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it fails only if the process has ended
	select {
	case <-r.ended:
	case <-ctx.Done():
	case <-time.After(StopTimeout):
	}
	m.end(r)
}

// Kill ends the manager's whole process tree at once and without a signal to react to, as a node does that loses power. Start it
// again with [ManagerProcess.Restart].
func (m *ManagerProcess) Kill() {
	if r := m.run.Swap(nil); r != nil {
		note(trace.You, "killed your manager")
		m.end(r)
	}
}

// end ends what is left of a run. It deletes the leases of a manager that elects a leader in spite of its flags. Otherwise the next
// manager would wait until the lease of the dead process expires, after 15 seconds. An error only costs that wait.
func (m *ManagerProcess) end(r *managerRun) {
	r.kill()
	<-r.ended
	ctx, cancel := context.WithTimeout(context.Background(), diagnosticsTimeout)
	defer cancel()
	for _, q := range m.proxy.Since(r.since) {
		if asksForLease(q) && q.Created() {
			_ = current.admin.Delete(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: q.Namespace, Name: q.Object}})
		}
	}
}

func asksForLease(r apiproxy.Request) bool {
	return r.Group == coordinationv1.GroupName && r.Resource == "leases"
}

// Restart stops the manager, if it runs, and starts it with the given operand image.
func (m *ManagerProcess) Restart(ctx context.Context, image string) error {
	m.stop(ctx)
	return m.start(ctx, image)
}

// RestartIn restarts the manager with WATCH_NAMESPACE, for the rest of the check.
func (m *ManagerProcess) RestartIn(ctx context.Context, namespaces string) error {
	m.settings.watched = namespaces
	return m.Restart(ctx, current.config.MemcachedImage)
}

// WhileStopped stops the manager, calls act, and starts the manager again with the run's image.
func (m *ManagerProcess) WhileStopped(ctx context.Context, act func() error) error {
	m.stop(ctx)
	acted := act()
	return errors.Join(acted, m.start(ctx, current.config.MemcachedImage))
}

// gone is the finding about a manager that does no work, nil for any other: it ended by itself, or it runs and has sent no request
// since its start.
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
		"it has been running for %s and has not sent one request: does it start a controller?", silenceTimeout).TooLate()
}

// lastLine tells why a manager ended: its panic, or else the last line of its output.
func lastLine(output string) string {
	if p := diagnostics.FindPanic(output, current.config.Workspace, nil); p != "" {
		return "it panicked: " + p
	}
	lines := slices.Concat(diagnostics.Trouble(output, nil, 1), diagnostics.Last(output, nil, 1))
	if len(lines) == 0 {
		return "it printed nothing"
	}
	return "its log says: " + lines[0]
}

// counter finds the lines of the metric with which controller-runtime counts passes, by their result.
var counter = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{([^}]*)\} ([0-9.e+]+)$`)

// Passes is how often a manager has called Reconcile, by its own metrics. A manager without metrics has 0.
type Passes struct {
	// All counts all calls.
	All int
	// Failed counts the calls that returned an error: those with the result "error".
	Failed int
	// Again counts the calls that asked for another one without an error (RequeueAfter, Requeue): those with the result
	// "requeue_after" or "requeue".
	Again int
}

// PassesDuring counts the passes that the manager made while act ran.
func (m *ManagerProcess) PassesDuring(ctx context.Context, act func() error) (Passes, error) {
	before, counted := m.passes(ctx)
	if err := act(); err != nil || !counted {
		return Passes{}, err
	}
	after, _ := m.passes(ctx)
	return Passes{All: after.All - before.All, Failed: after.Failed - before.Failed, Again: after.Again - before.Again}, nil
}

// passes adds up the manager's metric. counted is false if the manager does not serve it.
func (m *ManagerProcess) passes(ctx context.Context) (passes Passes, counted bool) {
	text, err := m.Metrics(ctx)
	if err != nil {
		return passes, false
	}
	lines := counter.FindAllStringSubmatch(text, -1)
	for _, line := range lines {
		n, _ := strconv.ParseFloat(line[2], 64)
		passes.All += int(n)
		switch {
		case strings.Contains(line[1], `result="error"`):
			passes.Failed += int(n)
		case strings.Contains(line[1], `result="requeue`):
			passes.Again += int(n)
		}
	}
	return passes, len(lines) > 0
}

// Metrics reads the manager's metrics.
func (m *ManagerProcess) Metrics(ctx context.Context) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), err
}

// logLimit is how many bytes of the end of a manager's output are kept. Each recovered panic takes 6 KB, and
// controller-runtime tries again sixteen times in two minutes, for each Memcached.
const logLimit = 512 << 10

// logFile is the file with a manager's output.
type logFile struct{ *os.File }

func openLog(path string) (logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return logFile{}, fmt.Errorf("keep the manager's output: %w", err)
	}
	return logFile{file}, nil
}

// String is the end of the output, [logLimit] at most, without credentials.
func (l logFile) String() string {
	end, _ := l.Seek(0, io.SeekEnd)
	text, _ := io.ReadAll(io.NewSectionReader(l, max(0, end-logLimit), logLimit))
	return diagnostics.Redact(string(text))
}

// Lines are the lines of [logFile.String] that contain text.
func (l logFile) Lines(text string) (lines []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Close replaces the content of the file with [logFile.String].
func (l logFile) Close() {
	text := l.String()
	_ = l.Truncate(0)
	_, _ = l.WriteString(text)
	_ = l.File.Close()
}
