package clusters

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/renameio/v2/maybe"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"

	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/internal/layout"
	"github.com/example/operator-lab/clusters/internal/ready"
)

const (
	// bootTimeout bounds kind's own work: containers, kubeadm, CNI, storage. It takes 10 s on an idle machine; kubeadm
	// itself gives up after 4 minutes.
	bootTimeout = 6 * time.Minute
	// readyTimeout is how long a cluster may take from the end of kind's work until everything is ready: CoreDNS starts
	// within 10 s, ten times that when several clusters start side by side.
	readyTimeout = 2 * time.Minute
	// cleanupTimeout bounds the removal of what a failed or cancelled creation left. It runs although the caller's
	// context has ended.
	cleanupTimeout = 2 * time.Minute
	// logsTimeout bounds the collection of logs after a failed creation.
	logsTimeout = time.Minute
)

// coredns is a patch for kubeadm. The name of its file says what it is for. An engine that does not see the files of this
// machine does without it, and the cluster is ready some seconds later.
//
//go:embed patches/corednsdeployment.yaml
var coredns []byte

const corednsPatch = "patches/corednsdeployment.yaml"

// Create makes a cluster and waits until it is ready: nodes by kind's own API, then CoreDNS. When it fails, the logs are
// under artifacts/NAME of the state directory and nothing else is left.
func (k *kind) Create(ctx context.Context, name string, spec Spec) (*Cluster, error) {
	if err := layout.CheckName(name); err != nil {
		return nil, err
	}
	config, err := kindConfig(spec)
	if err != nil {
		return nil, err
	}
	if err := k.checkImages(ctx, config.Nodes); err != nil {
		return nil, err
	}
	names, err := k.List(ctx)
	if err != nil {
		return nil, err
	}
	if slices.Contains(names, name) {
		return nil, k.taken(name)
	}
	label, err := k.drawLabel(name)
	if err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", name, err)
	}
	patch := filepath.Join(k.state, corednsPatch)
	if err := errors.Join(os.MkdirAll(filepath.Dir(patch), 0o755), maybe.WriteFile(patch, coredns, 0o644)); err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", name, err)
	}
	for i := range config.Nodes {
		config.Nodes[i].ExtraMounts = append(config.Nodes[i].ExtraMounts,
			v1alpha4.Mount{HostPath: filepath.Dir(patch), ContainerPath: "/kind/patches", Readonly: true}, // kind.yaml names it
			// kind lets nobody set the labels of a container, so the label is the target of a mount. Its source is a folder
			// that kind mounts itself, so it can be mounted wherever kind works.
			v1alpha4.Mount{HostPath: "/lib/modules", ContainerPath: labelTarget + label, Readonly: true})
	}
	return (&attempt{kind: k, name: name, label: label, config: config, logger: &kindLogger{log: k.log}}).run(ctx)
}

// checkImages refuses an image that would be pulled without having been asked to, or that would give the Pods of two
// nodes the same addresses.
func (k *kind) checkImages(ctx context.Context, list []v1alpha4.Node) error {
	for _, node := range list {
		found, err := engine.Inspect(ctx, k.engine, node.Image)
		if err != nil {
			return problem(err, ErrNoEngine, "cannot look for node image %s", node.Image)
		}
		if found != nil && found.Config.Labels[layout.NodeImageLabel] != "" && len(list) > 1 {
			return fmt.Errorf("node image %s is for clusters of one node: all its nodes give Pods the same addresses; use one such as %s",
				node.Image, DefaultNodeImage)
		}
		if found != nil {
			continue
		}
		if !k.pull {
			return &Problem{What: fmt.Sprintf("node image %s is not on this machine", node.Image), Reason: ErrImageMissing}
		}
		k.log("pulling " + node.Image)
		if _, err := engine.Run(ctx, k.engine, "pull", node.Image); err != nil {
			return problem(err, ErrImageMissing, "cannot pull node image %s", node.Image)
		}
	}
	return nil
}

// taken is the error for a name that somebody else's cluster has.
func (k *kind) taken(name string) error {
	_, remove := k.Commands(name)
	return &Problem{What: "cannot create cluster " + name, Err: ErrExists, Fix: remove + ", if nobody needs that cluster"}
}

// Each creation draws a label, writes it into the cluster's folder, and gives it to its nodes. Only nodes that carry the
// label in the folder are ever deleted: a cluster that somebody else made under the same name, from another state folder
// for example, stays.
const labelTarget = "/kind/owner/"

func (k *kind) labelFile(name string) string {
	return filepath.Join(layout.Dir(k.state, name), "label")
}

// drawLabel draws the label of a new cluster and writes it down. The error is [ErrExists] when there is one of that name.
func (k *kind) drawLabel(name string) (label string, err error) {
	if err := layout.MakeDir(k.state, name); err != nil {
		return "", err
	}
	file, err := os.OpenFile(k.labelFile(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", ErrExists
	}
	if err != nil {
		return "", err
	}
	label = rand.Text()
	_, err = file.WriteString(label)
	return label, errors.Join(err, file.Sync(), file.Close())
}

// label is the label of the cluster of that name, "" when this state folder has none.
func (k *kind) label(name string) (string, error) {
	data, err := os.ReadFile(k.labelFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// ownNodes are the IDs of the containers of a cluster that carry the label, and the names of those that do not.
func (k *kind) ownNodes(ctx context.Context, name, label string) (own, others []string, err error) {
	list, err := k.nodes(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range list {
		const format = "{{.Id}}{{range .Mounts}} {{.Destination}}{{end}}"
		out, err := engine.Ask(ctx, k.engine, "container", "inspect", "--format", format, node.String())
		id, mounts, _ := strings.Cut(out, " ")
		switch {
		case err != nil && k.vanished(ctx, name, node):
		case err != nil:
			return nil, nil, fmt.Errorf("look at node %s: %w", node, err)
		case slices.Contains(strings.Fields(mounts), labelTarget+label):
			own = append(own, id)
		default:
			others = append(others, node.String())
		}
	}
	return own, others, nil
}

// attempt is one creation.
type attempt struct {
	*kind
	name   string
	label  string
	config *v1alpha4.Cluster
	logger *kindLogger
}

// run makes the cluster. Whatever happens, either a cluster is returned or none is left.
func (a *attempt) run(ctx context.Context) (c *Cluster, err error) {
	defer func() {
		if c == nil {
			err = a.abandon(ctx, err)
		}
	}()
	if err := a.boot(ctx); err != nil {
		return nil, err
	}
	if err := os.Chmod(a.kubeconfig(a.name), 0o600); err != nil {
		return nil, fmt.Errorf("protect kubeconfig: %w", err)
	}
	a.log("Waiting until everything is ready")
	client, err := newClient(&Cluster{Name: a.name, Kubeconfig: a.kubeconfig(a.name)})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, readyTimeout, fmt.Errorf("not ready within %v", readyTimeout))
	defer cancel()
	if err := ready.Wait(ctx, client, ready.Wanted{Nodes: len(a.config.Nodes), DNS: true}); err != nil {
		return nil, err
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("read version of the API server: %w", err)
	}
	return &Cluster{
		Name: a.name, Provider: "kind", Kubeconfig: a.kubeconfig(a.name), Version: version.GitVersion,
		NodeImage: a.config.Nodes[0].Image, Nodes: len(a.config.Nodes), RealPods: true,
	}, nil
}

// commandSays looks for words in what a failed command of kind printed: the engines have no other sign.
func commandSays(err error, words ...string) bool {
	run := exec.RunErrorForError(err)
	return run != nil && slices.ContainsFunc(words, func(w string) bool { return strings.Contains(string(run.Output), w) })
}

// boot runs kind, which knows neither context nor signal. When ctx ends first, it takes kind's containers away until kind
// gives up: a container that kind is just starting appears only after a first removal.
func (a *attempt) boot(ctx context.Context) error {
	provider, err := a.provider(a.logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout, fmt.Errorf("not done within %v", bootTimeout))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- provider.Create(a.name,
			cluster.CreateWithV1Alpha4Config(a.config),
			cluster.CreateWithKubeconfigPath(a.kubeconfig(a.name)),
			cluster.CreateWithRetain(true), // so that there are logs to collect; abandon deletes
		)
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(context.Cause(ctx), a.stop(done))
	}
}

// stop ends a creation that is under way and waits for its end.
func (a *attempt) stop(done <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for {
		_ = a.deleteNodes(ctx, a.name, a.label) // fails while kind is still making what is being removed
		select {
		case <-done: //nolint:errcheck // the attempt failed because it was stopped; its end is what counts
			return nil
		case <-ctx.Done():
			return &Problem{What: fmt.Sprintf("the container engine %s does not finish making cluster %s", a.engine, a.name), Reason: ErrBroken}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

const (
	// interruptTime is how long to wait for ctx to end after a failure. Ctrl-C can end the engine's client before it ends
	// ctx, and then it was no failure.
	interruptTime = 100 * time.Millisecond
	// settleTime is how long a cancelled creation is watched for a container that comes after all. Ctrl-C at a terminal
	// reaches the engine's client too, which ends while the engine may still be working on what it was told.
	settleTime = time.Second
)

// abandon cleans up after err. The logs of a creation that was not cancelled are kept.
func (a *attempt) abandon(ctx context.Context, err error) error {
	cancelled := pause(ctx, interruptTime)
	_, others, lookErr := a.ownNodes(context.WithoutCancel(ctx), a.name, a.label)
	switch {
	case cancelled != nil:
		stuck, _ := errors.AsType[*Problem](err) // an engine that could not be stopped
		err = fmt.Errorf("create cluster %s: %w", a.name, cancelled)
		if stuck != nil {
			err = errors.Join(err, stuck)
		}
	case lookErr == nil && len(others) > 0 || commandSays(err, "already in use by", "already used by"): // engines give a name once
		err = a.taken(a.name)
	default:
		err = a.failure(err, a.document(context.WithoutCancel(ctx), err))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	gone := a.Delete(ctx, a.name)
	for end := time.Now().Add(settleTime); gone == nil && cancelled != nil && time.Now().Before(end); {
		gone = errors.Join(a.deleteNodes(ctx, a.name, a.label), pause(ctx, 100*time.Millisecond))
	}
	return errors.Join(err, gone)
}

// failure is the *Problem of a creation that failed because of err.
func (a *attempt) failure(err error, logs string) error {
	what := "cannot create cluster " + a.name
	if logs != "" {
		what += ", logs in " + logs
	}
	if p, ok := errors.AsType[*Problem](err); ok {
		return &Problem{What: what + ": " + p.What, Reason: p.Reason, Fix: p.Fix, Err: p.Err}
	}
	return &Problem{What: what, Err: describe(err)}
}

// document writes what is known about a failed creation and returns where, or "" when that was nothing.
func (a *attempt) document(ctx context.Context, failure error) string {
	ctx, cancel := context.WithTimeout(ctx, logsTimeout)
	defer cancel()
	dir := layout.Artifacts(a.state, a.name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return ""
	}
	text := a.logger.text()
	if run := exec.RunErrorForError(failure); run != nil {
		text = fmt.Appendf(text, "\n$ %s\n%s\n%v\n", run.PrettyCommand(), run.Output, run.Inner)
	}
	if err := os.WriteFile(filepath.Join(dir, "create.log"), text, 0o644); err != nil {
		return ""
	}
	_ = a.CollectLogs(ctx, a.name, dir) // without a node there is nothing more to collect
	return dir
}
