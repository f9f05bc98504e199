package clusters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/exec"
)

const (
	// bootTimeout bounds kind's own work: containers, kubeadm, CNI, storage. It
	// takes 10 s on an idle machine; kubeadm itself gives up after 4 minutes.
	bootTimeout = 6 * time.Minute
	// ReadyTimeout is how long a cluster may take from the end of kind's work
	// until everything is ready: CoreDNS starts within 10 s, ten times that when
	// several clusters start side by side.
	ReadyTimeout = 2 * time.Minute
	// cleanupTimeout bounds the removal of what a failed or cancelled creation
	// left. It runs although the caller's context has ended.
	cleanupTimeout = 2 * time.Minute
	// logsTimeout bounds the collection of logs after a failed creation.
	logsTimeout = time.Minute
	// portAttempts is how often a creation is begun when another program took the
	// API server's port between kind's choice and the engine's use of it.
	portAttempts = 3
)

// Create makes a cluster and waits until it is ready, in these steps: the configuration of kind.yaml and spec
// (kindconfig.go); nodes by kind's own API, with attempts and logs (this file); readiness of nodes (ready.go); CoreDNS
// (kinddns.go). Which image the nodes have, and what is in it, is nodeimage's matter. When it fails, the logs
// are under artifacts/NAME of the state directory and nothing else is left; an
// error that is not the caller's ending of ctx is a *Problem.
func (k *Kind) Create(ctx context.Context, name string, spec Spec) (*Cluster, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	config, err := kindConfig(spec)
	if err != nil {
		return nil, err
	}
	if err := k.mayCreate(ctx, name, config.Nodes); err != nil {
		return nil, err
	}
	label, err := k.drawLabel(name)
	if err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", name, err)
	}
	addLabel(config, label)
	a := &attempt{Kind: k, name: name, label: label, config: config, logger: &kindLogger{log: k.log}}
	c, err := a.run(ctx)
	if err != nil {
		return nil, err
	}
	c.NodeImage = config.Nodes[0].Image
	return c, nil
}

// mayCreate refuses what would pull an image, meet another cluster, or give Pods the same addresses.
func (k *Kind) mayCreate(ctx context.Context, name string, nodes []v1alpha4.Node) error {
	for _, node := range nodes {
		labels, present, err := imageLabels(ctx, k.engine, node.Image)
		if err != nil {
			return err
		}
		if strings.Contains(labels, RecipeLabel) && len(nodes) > 1 {
			return fmt.Errorf("create cluster %s: node image %s is for clusters of one node: all its nodes give Pods the same addresses; "+
				"use one such as %s", name, node.Image, DefaultNodeImage)
		}
		if !present {
			return &Problem{
				What: fmt.Sprintf("node image %s is not on this machine", node.Image),
				Fix:  "make node-image",
			}
		}
	}
	names, err := k.List(ctx)
	if err != nil {
		return err
	}
	if slices.Contains(names, name) {
		return k.taken(name)
	}
	return nil
}

// taken is the error for a name that somebody else's cluster has.
func (k *Kind) taken(name string) error {
	return &Problem{What: "cannot create cluster " + name, Err: ErrExists, Fix: k.removal([]string{name + "-control-plane"})}
}

// attempt is one creation.
type attempt struct {
	*Kind
	name   string
	label  string
	config *v1alpha4.Cluster
	logger *kindLogger
}

// run boots the cluster and waits until it is ready. Whatever happens, a panic
// included, either a cluster is returned or none is left.
func (a *attempt) run(ctx context.Context) (c *Cluster, err error) {
	defer func() {
		if c == nil {
			err = a.abandon(ctx, err)
		}
	}()
	if err := a.bootWithRetries(ctx); err != nil {
		return nil, err
	}
	if err := os.Chmod(a.Kubeconfig(a.name), 0o600); err != nil {
		return nil, fmt.Errorf("protect kubeconfig: %w", err)
	}
	version, err := a.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	return &Cluster{
		Name: a.name, Provider: "kind", Kubeconfig: a.Kubeconfig(a.name), Version: version,
		Nodes: len(a.config.Nodes), RealPods: true, Logs: true,
	}, nil
}

// awaitReady returns the version of the API server when the cluster is ready.
func (a *attempt) awaitReady(ctx context.Context) (string, error) {
	a.log("Installing CoreDNS")
	if err := a.installDNS(ctx); err != nil {
		return "", err
	}
	a.log("Waiting until everything is ready")
	return WaitReady(ctx, a.Kubeconfig(a.name), Readiness{Nodes: len(a.config.Nodes), DNS: true}, a.readyTimeout)
}

func (a *attempt) bootWithRetries(ctx context.Context) error {
	for n := 1; ; n++ {
		err := a.boot(ctx)
		if err == nil || n == portAttempts || !portTaken(err) {
			return err
		}
		a.log("another program took the port of the API server: once more")
		if err := a.deleteNodes(ctx, a.name, a.label); err != nil {
			return err
		}
	}
}

// portTaken recognises the one failure that trying again fixes. The engines
// have no other sign for it than their words.
func portTaken(err error) bool {
	run := exec.RunErrorForError(err)
	if run == nil {
		return false
	}
	output := string(run.Output)
	return strings.Contains(output, "port is already allocated") || strings.Contains(output, "address already in use")
}

// boot runs kind, which knows neither context nor signal. When ctx ends first,
// it takes kind's containers away until kind gives up: a container that kind is
// just starting appears only after a first removal.
func (a *attempt) boot(ctx context.Context) error {
	provider, err := a.provider(a.logger)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bootTimeout, fmt.Errorf("not done within %v", bootTimeout))
	defer cancel()
	done := make(chan error, 1)
	go func() {
		_, err := inBackground(context.Background(), func() (struct{}, error) {
			return struct{}{}, provider.Create(a.name,
				cluster.CreateWithV1Alpha4Config(a.config),
				cluster.CreateWithKubeconfigPath(a.Kubeconfig(a.name)),
				// So that there are logs to collect; abandon deletes.
				cluster.CreateWithRetain(true),
			)
		})
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return errors.Join(ended(ctx), a.stop(done))
	}
}

// stop ends a creation that is under way and waits for its end.
func (a *attempt) stop(done <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), cleanupTimeout)
	defer cancel()
	for {
		// Errors are expected: kind is still making what is being removed.
		_ = a.deleteNodes(ctx, a.name, a.label)
		select {
		case <-done: //nolint:errcheck // the attempt failed because it was stopped; its end is what counts
			return nil
		case <-ctx.Done():
			return &Problem{
				What: fmt.Sprintf("the container engine %s does not finish making cluster %s", a.engine, a.name),
				Fix:  FixCluster, Err: ctx.Err(),
			}
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// abandon cleans up after err. A creation that was cancelled is only removed;
// one that failed is documented first.
func (a *attempt) abandon(ctx context.Context, err error) error {
	what := fmt.Sprintf("cannot create cluster %s", a.name)
	cancelled := wasCancelled(ctx)
	switch {
	case cancelled != nil:
		err = errors.Join(fmt.Errorf("create cluster %s: %w", a.name, cancelled), stuck(err))
	case a.othersCame(ctx):
		err = a.taken(a.name)
	default:
		if dir := a.document(context.WithoutCancel(ctx), err); dir != "" {
			what += ", logs in " + dir
			err = withShortage(dir, err)
		}
		err = failure(what, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer cancel()
	gone := a.Delete(ctx, a.name)
	if gone == nil && cancelled != nil {
		gone = a.settle(ctx)
	}
	return errors.Join(err, gone)
}

// othersCame says whether somebody else has begun a cluster of that name meanwhile. Engines give a name once.
func (a *attempt) othersCame(ctx context.Context) bool {
	_, others, err := a.ownNodes(ctx, a.name, a.label)
	return err == nil && len(others) > 0
}

// interruptTime is how long to wait for ctx to end after a failure. Ctrl-C can end
// the engine's client before it ends ctx, and then it was no failure.
const interruptTime = 100 * time.Millisecond

// wasCancelled returns why ctx ended, nil if it has not.
func wasCancelled(ctx context.Context) error {
	select {
	case <-ctx.Done():
	case <-time.After(interruptTime):
	}
	return ctx.Err()
}

// stuck picks the one thing out of err that matters although the creation was
// cancelled: that the engine could not be stopped.
func stuck(err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	return nil
}

// failure is the *Problem of a creation that failed because of err.
func failure(what string, err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		return &Problem{What: what + ": " + p.What, Fix: p.Fix, Err: p.Err}
	}
	return &Problem{What: what, Fix: "make doctor", Err: describe(err)}
}

// outOfInstances is what a program says to which the kernel grants no inotify instance any more (EMFILE). It is the same
// as for too many open files, of which a node may have a million.
const outOfInstances = "too many open files"

// withShortage explains err by too few inotify instances, if a log below dir tells of them. The cluster beyond what the
// kernel grants boots, and then its kube-proxy ends again and again.
func withShortage(dir string, err error) error {
	log := ""
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, unread error) error {
		if unread != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // what can be read is looked at
		}
		if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(outOfInstances)) {
			log = strings.TrimPrefix(path, dir+string(filepath.Separator))
			return filepath.SkipAll
		}
		return nil
	})
	if log == "" {
		return err
	}
	if p, ok := errors.AsType[*Problem](err); ok { // its command does not fix this
		err = fmt.Errorf("%s: %w", p.What, p.Err)
	}
	return &Problem{
		What: fmt.Sprintf("the kernel grants too few inotify instances for so many clusters: %q in %s", outOfInstances, log),
		Fix:  fixEngine, Err: err,
	}
}

// settleTime is how long a cancelled creation is watched for a container that
// comes after all. Ctrl-C at a terminal reaches the engine's client too, which
// ends while the engine may still be working on what it was told.
const settleTime = time.Second

func (a *attempt) settle(ctx context.Context) error {
	for end := time.Now().Add(settleTime); time.Now().Before(end); {
		left, _, err := a.ownNodes(ctx, a.name, a.label)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return a.deleteNodes(ctx, a.name, a.label)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}

// document writes what is known about a failed creation and returns where, or
// "" when that was nothing.
func (a *attempt) document(ctx context.Context, failure error) string {
	ctx, cancel := context.WithTimeout(ctx, logsTimeout)
	defer cancel()
	dir := filepath.Join(a.state, "artifacts", a.name)
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
	// Without a node there is nothing more to collect, and that is no news.
	_ = a.CollectLogs(ctx, a.name, dir)
	return dir
}
