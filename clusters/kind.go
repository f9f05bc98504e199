package clusters

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/exec"
)

// Kind makes clusters whose nodes are containers, through kind's Go API. It
// needs no kind program, reads and writes no kubeconfig but its own, and never
// pulls an image.
type Kind struct {
	state  string
	engine string
	log    func(line string)
	kind   *cluster.Provider
	// readyTimeout is ReadyTimeout, except in a test of what happens after it.
	readyTimeout time.Duration
}

var (
	_ Provider            = (*Kind)(nil)
	_ NodeInspector       = (*Kind)(nil)
	_ Identifier          = (*Kind)(nil)
	_ ImageSaver          = (*Kind)(nil)
	_ ControllerRestarter = (*Kind)(nil)
)

// KindOption changes what NewKind makes.
type KindOption func(*Kind)

// WithEngine chooses the container engine: docker, podman or nerdctl. Without
// it, or with "", NewKind takes the first that answers.
func WithEngine(engine string) KindOption {
	return func(k *Kind) { k.engine = engine }
}

// WithLogger passes on what kind reports about its progress, line by line and
// possibly from several goroutines at once. Without it, kind is silent.
func WithLogger(log func(line string)) KindOption {
	return func(k *Kind) { k.log = log }
}

// WithReadyTimeout replaces [ReadyTimeout].
func WithReadyTimeout(d time.Duration) KindOption {
	return func(k *Kind) { k.readyTimeout = d }
}

// NewKind returns a provider that keeps its kubeconfigs and the logs of failed
// attempts under stateDir. The error is a *Problem when no engine answers. An
// engine that was named is not asked before it is needed.
func NewKind(stateDir string, opts ...KindOption) (*Kind, error) {
	state, err := filepath.Abs(stateDir)
	if err != nil {
		return nil, fmt.Errorf("find state directory: %w", err)
	}
	k := &Kind{state: state, log: func(string) {}, readyTimeout: ReadyTimeout}
	for _, opt := range opts {
		opt(k)
	}
	if k.engine == "" {
		if k.engine, err = DetectEngine(context.Background()); err != nil {
			return nil, err
		}
	}
	if k.kind, err = k.provider(&kindLogger{log: k.log}); err != nil {
		return nil, err
	}
	return k, nil
}

// provider is kind's own provider. It is cheap, so each creation has one of its
// own, whose logger keeps what was said.
func (k *Kind) provider(logger *kindLogger) (*cluster.Provider, error) {
	var runtime cluster.ProviderOption
	switch k.engine {
	case "docker":
		runtime = cluster.ProviderWithDocker()
	case "podman":
		runtime = cluster.ProviderWithPodman()
	case "nerdctl":
		runtime = cluster.ProviderWithNerdctl("")
	default:
		return nil, fmt.Errorf("unknown container engine %q: use one of %s", k.engine, strings.Join(Engines(), ", "))
	}
	return cluster.NewProvider(cluster.ProviderWithLogger(logger), runtime), nil
}

// Engine is the container engine in use.
func (k *Kind) Engine() string { return k.engine }

// Identity is kind/ENGINE, with the engine's address where the environment
// names one.
func (k *Kind) Identity() string {
	identity := "kind/" + k.engine
	if endpoint := engineEndpoint(k.engine); endpoint != "" {
		identity += "@" + endpoint
	}
	return identity
}

// Kubeconfig is the path of the cluster's kubeconfig, whether it exists or not.
func (k *Kind) Kubeconfig(name string) string {
	return Kubeconfig(k.state, name)
}

// List names every kind cluster on the engine, including those of other
// people.
func (k *Kind) List(ctx context.Context) ([]string, error) {
	names, err := ask(ctx, k.kind.List)
	if err != nil {
		return nil, problem(describe(err), fixEngine, "cannot list the clusters of %s", k.engine)
	}
	return names, nil
}

// deleteAttempts is how often a removal is tried. An engine under load answers
// "removal already in progress", or misses a container that was being started.
const deleteAttempts = 4

// Delete removes the nodes and the kubeconfig of a cluster that was made with this state folder, and looks whether they
// are gone. Nodes that somebody else made under that name stay. Where there are no others, that is an error.
func (k *Kind) Delete(ctx context.Context, name string) error {
	if err := CheckName(name); err != nil {
		return err
	}
	label, err := k.label(name)
	switch {
	case err != nil:
	case label == "":
		err = k.refuse(ctx, name)
	default:
		err = retry(ctx, deleteAttempts, 500*time.Millisecond, func() error { return k.deleteNodes(ctx, name, label) })
	}
	if err != nil {
		return problem(describe(err), FixCluster, "cannot delete cluster %s", name)
	}
	return k.removeFiles(name)
}

// refuse is an error when there is a cluster of that name.
func (k *Kind) refuse(ctx context.Context, name string) error {
	list, err := k.nodes(ctx, name)
	if err != nil || len(list) == 0 {
		return err
	}
	return &Problem{
		What: fmt.Sprintf("cannot delete cluster %s: nothing in %s says that it was made here", name, k.state),
		Fix:  k.removal(namesOf(list)),
	}
}

// removal is the command with which a person may remove nodes that are not known to be ours.
func (k *Kind) removal(nodes []string) string {
	return fmt.Sprintf("%s rm -f -v %s, if nobody needs that cluster", k.engine, strings.Join(nodes, " "))
}

// deleteNodes removes the containers that carry the label.
func (k *Kind) deleteNodes(ctx context.Context, name, label string) error {
	own, others, err := k.ownNodes(ctx, name, label)
	switch {
	case err != nil || len(own) == 0:
		return err
	case k.engine == "docker" || len(others) > 0:
		// By ID: the name may be somebody else's by now.
		_, err = commandEngine(ctx, k.engine, append([]string{"rm", "-f", "-v"}, own...)...)
	default:
		// kind knows what other engines leave of a container.
		_, err = inBackground(ctx, func() (struct{}, error) { return struct{}{}, k.kind.Delete(name, k.Kubeconfig(name)) })
	}
	if err != nil {
		return err
	}
	left, _, err := k.ownNodes(ctx, name, label)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("still there: %s", strings.Join(left, ", "))
	}
	return err
}

// removeFiles removes what a deleted cluster has in its folder, and the folder. Where that has the owner's record, it goes
// with the record, and the label stays as long: a container that was just being started may come after all.
func (k *Kind) removeFiles(name string) error {
	dir := Dir(k.state, name)
	// A creation that was killed leaves its lock on the kubeconfig.
	for _, file := range []string{k.Kubeconfig(name), k.Kubeconfig(name) + ".lock"} {
		if err := os.RemoveAll(file); err != nil {
			return fmt.Errorf("delete kubeconfig of cluster %s: %w", name, err)
		}
	}
	left, err := os.ReadDir(dir)
	if err == nil && len(left) == 1 && left[0].Name() == filepath.Base(k.labelFile(name)) {
		err = os.RemoveAll(dir)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete folder of cluster %s: %w", name, err)
	}
	return nil
}

// nodes lists the nodes of a cluster, none when there is no such cluster. All of them are Kubernetes nodes: with one
// control plane, kind makes no load balancer.
func (k *Kind) nodes(ctx context.Context, name string) ([]nodes.Node, error) {
	list, err := ask(ctx, func() ([]nodes.Node, error) { return k.kind.ListNodes(name) })
	if err != nil {
		return nil, problem(describe(err), fixEngine, "cannot list the nodes of cluster %s", name)
	}
	return list, nil
}

// existing is nodes for a cluster that has to exist.
func (k *Kind) existing(ctx context.Context, name string) ([]nodes.Node, error) {
	list, err := k.nodes(ctx, name)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("cluster %s: %w", name, errNoCluster)
	}
	return list, err
}

// controlPlane is the one control-plane node of a cluster.
func (k *Kind) controlPlane(ctx context.Context, name string) (nodes.Node, error) {
	list, err := k.existing(ctx, name)
	if err != nil {
		return nil, err
	}
	plane, err := nodeutils.BootstrapControlPlaneNode(list)
	if err != nil {
		return nil, problem(describe(err), fixEngine, "cannot find the control plane of cluster %s", name)
	}
	return plane, nil
}

// errNoCluster says that there is no cluster of that name.
var errNoCluster = errors.New("no such cluster")

// namesOf are the names of nodes, which are those of their containers.
func namesOf(list []nodes.Node) []string {
	names := make([]string, 0, len(list))
	for _, node := range list {
		names = append(names, node.String())
	}
	return names
}

// Nodes looks at the node containers through the engine.
func (k *Kind) Nodes(ctx context.Context, name string) ([]Node, error) {
	list, err := k.nodes(ctx, name)
	if err != nil {
		return nil, err
	}
	result := make([]Node, 0, len(list))
	for _, n := range list {
		state, err := runEngine(ctx, k.engine, "inspect", "--format", "{{.State.Status}}", n.String())
		if err != nil && k.vanished(ctx, name, n) {
			continue // somebody removed it between the list and the look
		}
		if err != nil {
			return nil, problem(err, fixEngine, "cannot look at node %s", n)
		}
		if state == "removing" || state == "dead" {
			continue // the engine still lists it, and nothing brings it back
		}
		node := Node{Name: n.String(), State: state, Running: state == "running"}
		if node.Running {
			inspectNode(ctx, n, &node)
		}
		result = append(result, node)
	}
	slices.SortFunc(result, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

// vanished says whether the engine, which answers, has no such node any more.
func (k *Kind) vanished(ctx context.Context, name string, node nodes.Node) bool {
	list, err := k.nodes(ctx, name)
	return err == nil && !slices.Contains(namesOf(list), node.String())
}

// insideScript prints the free disk space, how many programs the kernel has
// killed, and then the services that do not run.
const insideScript = `df --output=avail --block-size=1 /var | tail -n 1
sed -n 's/^oom_kill //p' /proc/vmstat
for s in containerd kubelet; do systemctl is-active --quiet $s || echo $s; done`

// inspectNode asks inside the node, because the engine may run it in a virtual
// machine where we cannot look. What cannot be asked stays unknown.
func inspectNode(ctx context.Context, n nodes.Node, node *Node) {
	ctx, cancel := context.WithTimeout(ctx, engineTimeout)
	defer cancel()
	lines, err := exec.OutputLines(n.CommandContext(ctx, "sh", "-c", insideScript))
	if err != nil || len(lines) < 2 {
		return
	}
	if free, err := strconv.ParseUint(strings.TrimSpace(lines[0]), 10, 64); err == nil {
		node.FreeDisk = max(free, 1)
	}
	node.Killed, _ = strconv.ParseUint(lines[1], 10, 64)
	node.Stopped = lines[2:]
}

// CollectLogs writes the journal, the logs of the containers and the engine's
// view of every node into dir.
func (k *Kind) CollectLogs(ctx context.Context, name, dir string) error {
	list, err := k.existing(ctx, name)
	if err != nil {
		return err
	}
	_, err = inBackground(ctx, func() (struct{}, error) { return struct{}{}, k.kind.CollectLogs(name, dir) })
	if ctx.Err() != nil {
		return fmt.Errorf("collect logs of cluster %s: %w", name, ctx.Err())
	}
	if err == nil || haveJournals(list, dir) {
		// Some parts fail on some nodes, such as the list of images where there
		// is no crictl. What matters is the journal.
		return nil
	}
	return fmt.Errorf("collect logs of cluster %s: %w", name, describe(err))
}

func haveJournals(list []nodes.Node, dir string) bool {
	for _, node := range list {
		info, err := os.Stat(filepath.Join(dir, node.String(), "journal.log"))
		if err != nil || info.Size() == 0 {
			return false
		}
	}
	return true
}

// inBackground runs f, which knows no context, and stops waiting for it when
// ctx ends.
func inBackground[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		var r result
		defer func() {
			if p := recover(); p != nil {
				r.err = fmt.Errorf("panic: %v", p)
			}
			done <- r
		}()
		r.value, r.err = f()
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ended(ctx)
	}
}

// ask is inBackground for a question that a living engine answers at once.
func ask[T any](ctx context.Context, f func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, engineTimeout, errNoAnswer)
	defer cancel()
	return inBackground(ctx, f)
}

// retry calls f up to n times, with a growing pause between two calls, until it
// succeeds or ctx ends.
func retry(ctx context.Context, n int, pause time.Duration, f func() error) error {
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || attempt == n {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(pause * time.Duration(attempt)):
		}
	}
}

// outputLines is how many of the last lines of a failed command an error
// repeats. The reason stands at the end; kubeadm prints hundreds before it.
const outputLines = 12

// describe adds what a failed command printed to the error of kind that hides
// it.
func describe(err error) error {
	run := exec.RunErrorForError(err)
	if run == nil {
		return err
	}
	output := strings.TrimSpace(string(run.Output))
	if output == "" {
		return err
	}
	lines := strings.Split(output, "\n")
	if len(lines) > outputLines {
		lines = lines[len(lines)-outputLines:]
	}
	return fmt.Errorf("%w\n\t%s", err, strings.Join(lines, "\n\t"))
}
