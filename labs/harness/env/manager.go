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
	proxy      *apiproxy.Proxy
	flags      []string // that it is started with
	home       string
	kubeconfig string
	metrics    string // its address on loopback
	output     logFile
	registry   *registry.Registry         // that it is told of at its next start, nil for none
	run        atomic.Pointer[managerRun] // nil while nobody wants it to run
}

// managerRun is the manager from one start to its end.
type managerRun struct {
	cmd    *exec.Cmd
	kill   context.CancelFunc
	image  string // of the operand, as it was told
	began  time.Time
	since  int           // requests that came before it
	ended  chan struct{} // closed when it has, by itself or not
	lasted time.Duration
}

// newManager makes a manager that is not started yet. It shows the API server a token.
func newManager(proxy *apiproxy.Proxy, token string) (*ManagerProcess, error) {
	home, err := os.MkdirTemp(current.config.Scratch, "manager-")
	if err != nil {
		return nil, fmt.Errorf("make a home for the manager: %w", err)
	}
	addresses, err := loopback.Free(2)
	if err != nil {
		return nil, err
	}
	output, err := openLog(filepath.Join(current.config.Artifacts, fmt.Sprintf("manager-%d.log", ginkgo.GinkgoParallelProcess())))
	if err != nil {
		return nil, err
	}
	m := &ManagerProcess{proxy: proxy, home: home, kubeconfig: filepath.Join(home, "kubeconfig"), metrics: addresses[0], output: output}
	m.flags = m.knownFlags("health-probe-bind-address="+addresses[1], "metrics-bind-address="+m.metrics, "metrics-secure=false", "leader-elect=false")
	err = clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"lab": {Server: proxy.URL(), CertificateAuthorityData: proxy.CA()}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{"manager": {Token: token}},
		Contexts:       map[string]*clientcmdapi.Context{"lab": {Cluster: "lab", AuthInfo: "manager"}},
		CurrentContext: "lab",
	}, m.kubeconfig)
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
	if err == nil {
		cmd.WaitDelay = StopTimeout
	}
	return cmd, err
}

// helpLimit bounds the learner's `-h`. A program that does not answer gets no flags: it may be one that knows none, and is
// judged by what it does.
const helpLimit = 5 * time.Second

// knownFlags are those of the given flags that the program lists as its own: an operator is free to have none. They keep the manager
// on loopback, and off the leader election that ends it outside a cluster.
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

// start runs the manager with the given operand image, and returns when it knows what there is, after [silenceTimeout] at most:
// before that, that it does nothing shows nothing. What a manager finds when it starts, controller-runtime's queue serves after all
// news, and while many checks make some, a slow manager does not come to it
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3496). A program that does not work is a finding of
// [ManagerProcess.gone], not an error.
func (m *ManagerProcess) start(ctx context.Context, image string) error {
	env := []string{"KUBECONFIG=" + m.kubeconfig, "MEMCACHED_IMAGE=" + image, "ENABLE_WEBHOOKS=false"}
	if m.registry != nil {
		env = append(env, "REGISTRY_URL="+m.registry.URL())
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
			asks := m.proxy.Count() > r.since && time.Since(r.began) > cacheTimeout
			return asks || len(m.output.Lines(workersLine)) > workers, nil
		}
	})
	return nil
}

// workersLine is what controller-runtime's log says when the caches are filled.
const workersLine = "Starting workers"

// stop asks the manager to end, as Kubernetes does, and kills its process tree when it does not.
func (m *ManagerProcess) stop(ctx context.Context) {
	r := m.run.Swap(nil)
	if r == nil {
		return
	}
	note(trace.You, "stopped your manager")
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // an error: it has ended
	select {
	case <-r.ended:
	case <-ctx.Done():
	case <-time.After(StopTimeout):
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

// WhileStopped does something while no manager runs, and starts it again.
func (m *ManagerProcess) WhileStopped(ctx context.Context, act func() error) error {
	m.stop(ctx)
	acted := act()
	return errors.Join(acted, m.start(ctx, current.config.MemcachedImage))
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
		"it has been running for %s and has not sent one request: does it start a controller?", silenceTimeout).TooLate()
}

// lastLine is what a manager that ended said about it.
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

// logLimit is how much of the end of a manager's output is kept and quoted from. Each recovered panic takes 6 KB, and
// controller-runtime tries again sixteen times in two minutes, for each Memcached.
const logLimit = 512 << 10

// logFile is what a manager prints.
type logFile struct{ *os.File }

func openLog(path string) (logFile, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return logFile{}, fmt.Errorf("keep the manager's output: %w", err)
	}
	return logFile{file}, nil
}

// String is the end of what was printed, without credentials.
func (l logFile) String() string {
	end, _ := l.Seek(0, io.SeekEnd)
	text, _ := io.ReadAll(io.NewSectionReader(l, max(0, end-logLimit), logLimit))
	return diagnostics.Redact(string(text))
}

// Lines are the recent lines that contain text.
func (l logFile) Lines(text string) (lines []string) {
	for line := range strings.Lines(l.String()) {
		if strings.Contains(line, text) {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// Close leaves in the file what [logFile.String] says.
func (l logFile) Close() {
	text := l.String()
	_ = l.Truncate(0)
	_, _ = l.WriteString(text)
	_ = l.File.Close()
}
