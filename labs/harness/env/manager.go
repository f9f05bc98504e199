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
	"sync"
	"syscall"
	"time"

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

// managerLog is the one of a Ginkgo process.
func managerLog(process int) string {
	if process == 1 {
		return "manager.log"
	}
	return fmt.Sprintf("manager-%d.log", process)
}

// helpLimit bounds the learner's `-h`. A program that does not answer gets no flags: it may be one that
// knows none, and is judged by what it does.
const helpLimit = 5 * time.Second

// ManagerProcess is the learner's program as a process. It can be stopped, killed and started again.
type ManagerProcess struct {
	credentials []byte // what is in its kubeconfig
	kubeconfig  string
	server      string // address of the API server that it knows
	home        string
	metrics     string     // loopback address
	health      string     // loopback address
	sent        func() int // how many requests the API server has seen from it
	program     program
	output      *tail
	registry    *registry.Registry       // that it is told of at its next start, nil for none
	starts      func()                   // is told before each start
	note        func(actor, text string) // is told what happens to it

	mu      sync.Mutex
	cmd     *exec.Cmd
	kill    context.CancelFunc
	ended   chan struct{}
	wanted  bool
	image   string // of the operand, as it was told at its last start
	exited  string // how it ended, "" while it runs
	started time.Time
	lasted  time.Duration // how long it had run when it exited
	before  int           // requests that earlier processes of it had sent
}

// newManager makes a manager that is not started yet. Its program is asked which flags it has, unless known says so.
func newManager(rec *apiproxy.Proxy, log string, known *program) (*ManagerProcess, error) {
	m, err := newProcess(log)
	if err != nil {
		return nil, err
	}
	m.server, m.sent = rec.Address(), rec.Count
	kubeconfig, err := credentials(rec.URL(), rec.CA(), rec.Token())
	if err != nil {
		return nil, err
	}
	if err := m.writeKubeconfig(kubeconfig); err != nil {
		return nil, err
	}
	if known == nil {
		asked := m.ask()
		known = &asked
	}
	m.program = *known
	return m, nil
}

// newProcess makes a manager with a home, addresses and a log of its own, and without a kubeconfig.
func newProcess(log string) (*ManagerProcess, error) {
	home, err := homeFor("manager")
	if err != nil {
		return nil, err
	}
	addresses, err := loopback.Free(2)
	if err != nil {
		return nil, err
	}
	return &ManagerProcess{
		home: home, metrics: addresses[0], health: addresses[1], starts: func() {}, note: func(_, _ string) {},
		output: newTail(filepath.Join(current.config.Artifacts, log)),
	}, nil
}

// credentials are a kubeconfig for the manager.
func credentials(url string, ca []byte, token string) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["lab"] = &clientcmdapi.Cluster{Server: url, CertificateAuthorityData: ca}
	config.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: token}
	config.Contexts["lab"] = &clientcmdapi.Context{Cluster: "lab", AuthInfo: "manager"}
	config.CurrentContext = "lab"
	data, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	return data, nil
}

// writeKubeconfig writes the manager's kubeconfig into its home.
func (m *ManagerProcess) writeKubeconfig(credentials []byte) error {
	m.credentials, m.kubeconfig = credentials, filepath.Join(m.home, "kubeconfig")
	if err := os.WriteFile(m.kubeconfig, credentials, 0o600); err != nil {
		return fmt.Errorf("write the manager's kubeconfig: %w", err)
	}
	uid, err := process.UserOf(m.home)
	if err != nil || uid < 0 {
		return err
	}
	if err := os.Chown(m.kubeconfig, uid, uid); err != nil {
		return fmt.Errorf("hand over the manager's kubeconfig: %w", err)
	}
	return nil
}

// helpSize is how much of what a program says about its flags is read. A manager of Kubebuilder's says 4 KB.
const helpSize = 64 << 10

var flagName = regexp.MustCompile(`(?m)^\s+-{1,2}([a-z][a-z0-9-]*)`)

// program is what a manager's program said about itself when it was asked for help.
type program struct {
	Flags   []string         `json:"flags,omitempty"`   // those of the wanted ones that it has
	Refused *finding.Finding `json:"refused,omitempty"` // why it cannot be started at all
}

// ask asks the program which flags it has: an operator is free to have none.
func (m *ManagerProcess) ask() (p program) {
	ctx, cancel := context.WithTimeout(context.Background(), helpLimit)
	defer cancel()
	help := &process.Head{Limit: helpSize}
	cmd, err := untrusted(ctx, m.home, nil, current.config.Manager, "-h")
	if err == nil {
		cmd.Stdout, cmd.Stderr = help, help
		err = cmd.Run()
	}
	if ctx.Err() != nil {
		return p
	}
	if panicked := diagnostics.FindPanic(help.String(), current.config.Workspace, diagnostics.LogFilter{}); err != nil && panicked != nil {
		p.Refused = finding.New(suite.CauseManagerExited, "the manager starts", "it panicked: %s", panicked)
		return p
	}
	for _, match := range flagName.FindAllStringSubmatch(help.String(), -1) {
		if slices.ContainsFunc(m.wantedFlags(), func(f managerFlag) bool { return f.name == match[1] }) && !slices.Contains(p.Flags, match[1]) {
			p.Flags = append(p.Flags, match[1])
		}
	}
	return p
}

// arguments are those of the wanted flags that the program has.
func (m *ManagerProcess) arguments() []string {
	var args []string
	for _, f := range m.wantedFlags() {
		if slices.Contains(m.program.Flags, f.name) {
			args = append(args, "--"+f.name+"="+f.value)
		}
	}
	return args
}

type managerFlag struct{ name, value string }

// wantedFlags keep the manager on loopback, and off the leader election that ends it outside a cluster.
func (m *ManagerProcess) wantedFlags() []managerFlag {
	return []managerFlag{
		{"health-probe-bind-address", m.health},
		{"metrics-bind-address", m.metrics},
		{"metrics-secure", "false"},
		{"leader-elect", "false"},
	}
}

// Start runs the manager with the given operand image. It does not wait for anything: what the manager
// does is the checks' business. A program that cannot be started is a finding, not an error.
func (m *ManagerProcess) Start(image string) error {
	if m.program.Refused != nil {
		return nil //nolint:nilerr // Gone reports it as a finding
	}
	m.starts()
	ctx, kill := context.WithCancel(context.Background())
	env := []string{"KUBECONFIG=" + m.kubeconfig, "MEMCACHED_IMAGE=" + image, "ENABLE_WEBHOOKS=false"}
	if m.registry != nil {
		env = append(env, "REGISTRY_URL="+m.registry.URL())
	}
	cmd, err := untrusted(ctx, m.home, env, current.config.Manager, m.arguments()...)
	if err != nil {
		kill()
		return err
	}
	cmd.Stdout, cmd.Stderr = m.output, m.output
	if err := cmd.Start(); err != nil {
		kill()
		return finding.Machine("start the manager", err)
	}
	ended := make(chan struct{})
	m.mu.Lock()
	m.cmd, m.kill, m.ended, m.wanted, m.image, m.exited, m.started = cmd, kill, ended, true, image, "", time.Now()
	m.before = m.sent()
	m.mu.Unlock()
	m.note(trace.You, "started your manager")
	go m.wait(cmd, ended)
	return nil
}

func (m *ManagerProcess) wait(cmd *exec.Cmd, ended chan struct{}) {
	_ = cmd.Wait()
	m.output.Flush()
	m.mu.Lock()
	m.exited, m.lasted = cmd.ProcessState.String(), time.Since(m.started)
	wanted := m.wanted
	m.mu.Unlock()
	if wanted {
		m.note(trace.Manager, "ended by itself ("+cmd.ProcessState.String()+")")
	}
	close(ended)
}

// Stop asks the manager to end, as Kubernetes does, and kills its process tree when it does not.
func (m *ManagerProcess) Stop(ctx context.Context) error {
	m.mu.Lock()
	cmd, ended, kill := m.cmd, m.ended, m.kill
	m.wanted = false
	m.mu.Unlock()
	if cmd == nil {
		return nil
	}
	m.note(trace.You, "stopped your manager")
	defer kill()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop the manager: %w", err)
	}
	timeout := time.NewTimer(StopTimeout)
	defer timeout.Stop()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
	case <-timeout.C:
	}
	kill()
	<-ended
	return nil
}

// Kill ends the manager's whole process tree at once and without a warning, as a node does that loses its
// power. Address, identity and log stay, so that Start brings back the same manager.
func (m *ManagerProcess) Kill() {
	m.mu.Lock()
	kill, ended := m.kill, m.ended
	m.wanted = false
	m.mu.Unlock()
	if kill == nil {
		return
	}
	m.note(trace.You, "killed your manager")
	kill()
	<-ended
}

// Replica is a second process of the same program with the same identity, and with addresses and a log of
// its own. It is not started yet. Nobody asks whether it ends by itself: a program whose ports are fixed
// cannot run twice on one machine.
func (m *ManagerProcess) Replica() (*ManagerProcess, error) {
	replica, err := newProcess("manager-replica.log")
	if err != nil {
		return nil, err
	}
	replica.server, replica.sent = m.server, m.sent
	if err := replica.writeKubeconfig(m.credentials); err != nil {
		return nil, err
	}
	replica.registry = m.registry
	replica.program, replica.note = m.program, m.note
	return replica, nil
}

// gone is a finding when the manager ended although nobody asked it to.
func (m *ManagerProcess) gone() *finding.Finding {
	if m.program.Refused != nil {
		return m.program.Refused
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.wanted || m.exited == "" {
		return nil
	}
	return finding.New(suite.CauseManagerExited, "the manager goes on running",
		"it ended by itself (%s) %s after its start; %s", m.exited, m.lasted.Round(time.Millisecond), lastLine(m.output.String()))
}

// lastLine is what a manager that ended said about it.
func lastLine(output string) string {
	if p := diagnostics.FindPanic(output, current.config.Workspace, diagnostics.LogFilter{}); p != nil {
		return "it panicked: " + p.String()
	}
	if lines := diagnostics.Trouble(output, diagnostics.LogFilter{}, 1); len(lines) > 0 {
		return "its last complaint: " + lines[0]
	}
	if lines := diagnostics.Last(output, diagnostics.LogFilter{}, 1); len(lines) > 0 {
		return "its last words: " + lines[0]
	}
	return "it printed nothing"
}

// Running is how long the manager has been running by now, 0 when it is not.
func (m *ManagerProcess) Running() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.wanted || m.exited != "" {
		return 0
	}
	return time.Since(m.started)
}

// Stopped says whether the manager does not run because somebody ended it, or never started it.
func (m *ManagerProcess) Stopped() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.wanted
}

// runs says whether somebody wants the manager to run with the operand's image. It may have ended by itself since.
func (m *ManagerProcess) runs(image string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wanted && m.image == image
}

func (m *ManagerProcess) requestsBefore() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.before
}

// counter and clock are lines of the metrics that controller-runtime counts passes with, by their result, and times them.
var (
	counter = regexp.MustCompile(`(?m)^controller_runtime_reconcile_total\{([^}]*)\} ([0-9.e+]+)$`)
	clock   = regexp.MustCompile(`(?m)^controller_runtime_reconcile_time_seconds_sum\{[^}]*\} ([0-9.e+-]+)$`)
)

// Passes is how often a manager has called Reconcile, as it counts itself.
type Passes struct {
	// Counted is false of a manager that does not tell; all is 0 then.
	Counted bool
	// All counts each call.
	All int
	// Again counts those that asked for another call without an error (RequeueAfter, Requeue). controller-runtime gives
	// them results of their own, "requeue_after" and "requeue".
	Again int
	// Took is the time in all of them.
	Took time.Duration
}

// PassesDuring are the passes that the manager made while act ran.
func (m *ManagerProcess) PassesDuring(ctx context.Context, act func() error) (Passes, error) {
	before := m.passes(ctx)
	if err := act(); err != nil || !before.Counted {
		return Passes{}, err
	}
	after := m.passes(ctx)
	return Passes{Counted: true, All: after.All - before.All, Again: after.Again - before.Again, Took: after.Took - before.Took}, nil
}

// passes adds up the manager's own count.
func (m *ManagerProcess) passes(ctx context.Context) Passes {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.metrics+"/metrics", nil)
	if err != nil {
		return Passes{}
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return Passes{}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return Passes{}
	}
	lines := counter.FindAllStringSubmatch(string(text), -1)
	passes := Passes{Counted: len(lines) > 0}
	for _, line := range lines {
		n, _ := strconv.ParseFloat(line[2], 64)
		passes.All += int(n)
		if strings.Contains(line[1], `result="requeue`) {
			passes.Again += int(n)
		}
	}
	for _, line := range clock.FindAllStringSubmatch(string(text), -1) {
		seconds, _ := strconv.ParseFloat(line[1], 64)
		passes.Took += time.Duration(seconds * float64(time.Second))
	}
	return passes
}
