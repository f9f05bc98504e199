package clusters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/internal/layout"
)

// kind makes clusters whose nodes are containers, through kind's Go API. It needs no kind program, and reads and writes no
// kubeconfig but its own.
type kind struct {
	state  string
	engine string
	log    func(line string)
	pull   bool
	kind   *cluster.Provider
}

var _ Provider = (*kind)(nil)

func newKind(m *Manager) (*kind, error) {
	k := &kind{state: m.state, engine: m.engine, log: m.log, pull: m.pull}
	var err error
	k.kind, err = k.provider(&kindLogger{log: m.log})
	return k, err
}

// provider is kind's own provider. It is cheap, so each creation has one of its own, whose logger keeps what was said.
func (k *kind) provider(logger *kindLogger) (*cluster.Provider, error) {
	var runtime cluster.ProviderOption
	switch k.engine {
	case "docker":
		runtime = cluster.ProviderWithDocker()
	case "podman":
		runtime = cluster.ProviderWithPodman()
	case "nerdctl":
		runtime = cluster.ProviderWithNerdctl("")
	default:
		return nil, fmt.Errorf("unknown container engine %q: use one of %s", k.engine, strings.Join(engine.Names(), ", "))
	}
	return cluster.NewProvider(cluster.ProviderWithLogger(logger), runtime), nil
}

// Identity is kind/ENGINE, with the engine's address where the environment names one.
func (k *kind) Identity() string {
	identity := "kind/" + k.engine
	if endpoint := engine.Endpoint(k.engine); endpoint != "" {
		identity += "@" + endpoint
	}
	return identity
}

func (k *kind) kubeconfig(name string) string { return layout.Kubeconfig(k.state, name) }

// List names every kind cluster on the engine, including those of other people.
func (k *kind) List(ctx context.Context) ([]string, error) {
	names, err := ask(ctx, k.kind.List)
	if err != nil {
		return nil, problem(describe(err), ErrNoEngine, "cannot list the clusters of %s", k.engine)
	}
	return names, nil
}

// Delete removes the nodes and the kubeconfig of a cluster that was made with this state folder, and looks whether they
// are gone. Nodes that somebody else made under that name stay.
func (k *kind) Delete(ctx context.Context, name string) error {
	if err := layout.CheckName(name); err != nil {
		return err
	}
	label, err := k.label(name)
	if err == nil && label == "" {
		return nil // it is not ours
	}
	// An engine under load answers "removal already in progress", or misses a container that was being started.
	for attempt := 1; err == nil && attempt <= deleteAttempts; attempt++ {
		if err = k.deleteNodes(ctx, name, label); err == nil || attempt == deleteAttempts {
			break
		}
		err = pause(ctx, time.Duration(attempt)*500*time.Millisecond)
	}
	if err != nil {
		return problem(describe(err), ErrBroken, "cannot delete cluster %s", name)
	}
	return k.removeFiles(name)
}

// deleteAttempts is how often a removal is tried.
const deleteAttempts = 4

// deleteNodes removes the containers that carry the label, by ID: the name may be somebody else's by now.
func (k *kind) deleteNodes(ctx context.Context, name, label string) error {
	own, _, err := k.ownNodes(ctx, name, label)
	if err != nil || len(own) == 0 {
		return err
	}
	if _, err := engine.Run(ctx, k.engine, append([]string{"rm", "-f", "-v"}, own...)...); err != nil {
		return err
	}
	left, _, err := k.ownNodes(ctx, name, label)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("still there: %s", strings.Join(left, ", "))
	}
	return err
}

// removeFiles removes what a deleted cluster has in its folder, and the folder. Where that has a record, it goes with the
// record, and the label stays as long: a container that was just being started may come after all.
func (k *kind) removeFiles(name string) error {
	dir := layout.Dir(k.state, name)
	// A creation that was killed leaves its lock on the kubeconfig.
	err := errors.Join(os.RemoveAll(k.kubeconfig(name)), os.RemoveAll(k.kubeconfig(name)+".lock"))
	if left, _ := os.ReadDir(dir); err == nil && len(left) == 1 && left[0].Name() == filepath.Base(k.labelFile(name)) {
		err = os.RemoveAll(dir)
	}
	if err != nil {
		return fmt.Errorf("delete files of cluster %s: %w", name, err)
	}
	return nil
}

// nodes lists the nodes of a cluster, none when there is no such cluster. All of them are Kubernetes nodes: with one
// control plane, kind makes no load balancer.
func (k *kind) nodes(ctx context.Context, name string) ([]nodes.Node, error) {
	list, err := ask(ctx, func() ([]nodes.Node, error) { return k.kind.ListNodes(name) })
	if err != nil {
		return nil, problem(describe(err), ErrNoEngine, "cannot list the nodes of cluster %s", name)
	}
	return list, nil
}

// existing is nodes for a cluster that has to exist.
func (k *kind) existing(ctx context.Context, name string) ([]nodes.Node, error) {
	list, err := k.nodes(ctx, name)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("cluster %s: no such cluster", name)
	}
	return list, err
}

// namesOf are the names of nodes, which are those of their containers.
func namesOf(list []nodes.Node) []string {
	names := make([]string, 0, len(list))
	for _, node := range list {
		names = append(names, node.String())
	}
	return names
}

// Nodes looks at the node containers through the engine.
func (k *kind) Nodes(ctx context.Context, name string) ([]Node, error) {
	list, err := k.nodes(ctx, name)
	if err != nil {
		return nil, err
	}
	result := make([]Node, 0, len(list))
	for _, n := range list {
		state, err := engine.Ask(ctx, k.engine, "inspect", "--format", "{{.State.Status}}", n.String())
		if err != nil && k.vanished(ctx, name, n) {
			continue // somebody removed it between the list and the look
		}
		if err != nil {
			return nil, problem(err, ErrNoEngine, "cannot look at node %s", n)
		}
		if state == "removing" || state == "dead" {
			continue // the engine still lists it, and nothing brings it back
		}
		node := Node{Name: n.String(), State: state, Running: state == "running"}
		if node.Running {
			lookInside(ctx, n, &node)
		}
		result = append(result, node)
	}
	slices.SortFunc(result, func(a, b Node) int { return strings.Compare(a.Name, b.Name) })
	return result, nil
}

// vanished says whether the engine, which answers, has no such node any more.
func (k *kind) vanished(ctx context.Context, name string, node nodes.Node) bool {
	list, err := k.nodes(ctx, name)
	return err == nil && !slices.Contains(namesOf(list), node.String())
}

// nodeScript prints the free disk space, and then the services that do not run.
const nodeScript = `df --output=avail --block-size=1 /var | tail -n 1
for s in containerd kubelet; do systemctl is-active --quiet $s || echo $s; done`

// lookInside asks inside the node, because the engine may run it in a virtual machine where we cannot look. What cannot be
// asked stays unknown.
func lookInside(ctx context.Context, n nodes.Node, node *Node) {
	ctx, cancel := context.WithTimeout(ctx, engine.Timeout)
	defer cancel()
	lines, err := exec.OutputLines(n.CommandContext(ctx, "sh", "-c", nodeScript))
	if err != nil || len(lines) == 0 {
		return
	}
	if free, err := strconv.ParseUint(strings.TrimSpace(lines[0]), 10, 64); err == nil {
		node.FreeDisk = max(free, 1)
	}
	node.Stopped = lines[1:]
}

// CollectLogs writes the journal, the logs of the containers and the engine's view of every node into dir. What a node
// does not have is left out, such as the list of images where there is no crictl.
func (k *kind) CollectLogs(ctx context.Context, name, dir string) error {
	if _, err := k.existing(ctx, name); err != nil {
		return err
	}
	_, err := inBackground(ctx, func() (struct{}, error) { return struct{}{}, k.kind.CollectLogs(name, dir) })
	if files, _ := os.ReadDir(dir); ctx.Err() == nil && len(files) > 0 || err == nil {
		return nil
	}
	return fmt.Errorf("collect logs of cluster %s: %w", name, describe(err))
}

// Keep has nothing to do: containers outlive this process.
func (k *kind) Keep(context.Context, string) error { return nil }

// pauseAttempts is how often a pause is tried: the freezer of cgroup v1 can fail to catch the processes of a node that is
// busy starting others.
const pauseAttempts = 3

// Pause freezes the node containers of the cluster.
func (k *kind) Pause(ctx context.Context, name string) (err error) {
	for attempt := 1; ; attempt++ {
		if err = k.freeze(ctx, name, "pause"); err == nil || attempt == pauseAttempts || pause(ctx, time.Second) != nil {
			return err
		}
	}
}

// Resume thaws them.
func (k *kind) Resume(ctx context.Context, name string) error { return k.freeze(ctx, name, "unpause") }

// Commands finds the nodes by kind's own label.
func (k *kind) Commands(name string) (resume, remove string) {
	nodes := fmt.Sprintf("$(%s ps -aq --filter label=io.x-k8s.kind.cluster=%s)", k.engine, name)
	return k.engine + " unpause " + nodes, k.engine + " rm -f -v " + nodes
}

func (k *kind) freeze(ctx context.Context, name, verb string) error {
	list, err := k.existing(ctx, name)
	if err == nil {
		_, err = engine.Ask(ctx, k.engine, append([]string{verb}, namesOf(list)...)...)
	}
	if err != nil {
		return problem(err, ErrBroken, "cannot %s cluster %s", verb, name)
	}
	return nil
}

const (
	// restartTimeout is for a container that the kubelet starts anew. It takes a second or two.
	restartTimeout = 30 * time.Second
	// restartScript ends the controller manager, whose name /proc cuts to 15 letters, and waits for another one. Not every
	// node image has a pkill.
	restartScript = `find() { for p in /proc/[0-9]*; do [ "$(cat "$p/comm" 2>/dev/null)" = kube-controller ] && echo "${p#/proc/}"; done; }
old=$(find); kill $old; until now=$(find); [ -n "$now" ] && [ "$now" != "$old" ]; do sleep 0.1; done`
)

// RestartControllers ends the controller manager, and waits until the kubelet has started it again.
func (k *kind) RestartControllers(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, restartTimeout)
	defer cancel()
	plane, err := k.controlPlane(ctx, name)
	if err == nil {
		err = plane.CommandContext(ctx, "sh", "-c", restartScript).Run()
	}
	if err != nil {
		return problem(describe(err), ErrBroken, "cannot restart the controllers of cluster %s", name)
	}
	return nil
}

// controlPlane is the one control-plane node of a cluster.
func (k *kind) controlPlane(ctx context.Context, name string) (nodes.Node, error) {
	list, err := k.existing(ctx, name)
	if err != nil {
		return nil, err
	}
	return nodeutils.BootstrapControlPlaneNode(list)
}

// LoadImageArchive imports a docker-archive tar into every node of the cluster.
func (k *kind) LoadImageArchive(ctx context.Context, name, archive string) error {
	list, err := k.existing(ctx, name)
	if err != nil {
		return err
	}
	for _, node := range list {
		file, err := os.Open(archive) // each node reads it from its beginning
		if err != nil {
			return fmt.Errorf("load image archive: %w", err)
		}
		// As nodeutils.LoadImageArchive does, but with a context.
		err = node.CommandContext(ctx, "ctr", "--namespace=k8s.io", "images", "import", "--all-platforms", "--digests", "--snapshotter=overlayfs", "-").
			SetStdin(file).Run()
		_ = file.Close()
		if err != nil {
			return fmt.Errorf("load image archive %s into node %s: %w", archive, node, cmp.Or(ctx.Err(), describe(err)))
		}
	}
	return nil
}

// SaveImage writes an image that the engine has to a docker-archive tar.
//
// What the engine saves may be an index of several platforms of which it has only one (Docker's containerd image store
// does so), and no node can import that (kubernetes-sigs/kind#3795). So exactly the image that the engine would run is
// written.
func (k *kind) SaveImage(ctx context.Context, image, archive string) error {
	tag, err := name.NewTag(image)
	if err != nil {
		return err
	}
	saved := archive + ".saved"
	defer func() { _ = os.Remove(saved) }()
	if _, err := engine.Run(ctx, k.engine, "save", "--output", saved, image); err != nil {
		return err
	}
	img, err := tarball.ImageFromPath(saved, nil)
	if err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, img)
}

// inBackground runs f, which knows no context, and stops waiting for it when ctx ends.
func inBackground[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	}
}

// ask is inBackground for a question that a living engine answers at once.
func ask[T any](ctx context.Context, f func() (T, error)) (T, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, engine.Timeout, engine.ErrTimeout)
	defer cancel()
	return inBackground(ctx, f)
}

// describe adds what a failed command printed last to the error of kind that hides it.
func describe(err error) error {
	const keep = 12 // the reason stands at the end; kubeadm prints hundreds of lines before it
	run := exec.RunErrorForError(err)
	if run == nil {
		return err
	}
	output := strings.TrimSpace(string(run.Output))
	if output == "" {
		return err
	}
	lines := strings.Split(output, "\n")
	return fmt.Errorf("%w\n\t%s", err, strings.Join(lines[max(0, len(lines)-keep):], "\n\t"))
}
