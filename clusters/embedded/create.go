package embedded

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/layout"
)

// ReadyTimeout is how long a control plane may take until everything works: 3 s on an idle machine, and many times that
// where every core is taken.
const ReadyTimeout = 2 * time.Minute

// stages is kwok's configuration: what becomes of nodes and Pods.
//
//go:embed stages.yaml
var stages []byte

// Create starts a control plane and waits until a Pod would be scheduled and run. When it fails, the logs are under
// artifacts/NAME of the state directory and nothing else is left; an error that is not the caller's ending of ctx is a
// *clusters.Problem.
func (e *Embedded) Create(ctx context.Context, name string, spec clusters.Spec) (*clusters.Cluster, error) {
	if err := layout.CheckName(name); err != nil {
		return nil, err
	}
	if spec.Config != nil || spec.Workers < 0 {
		return nil, fmt.Errorf("create cluster %s: embedded clusters support neither Spec.Config nor negative Spec.Workers", name)
	}
	address := cmp.Or(spec.APIServerAddress, loopback)
	if ip, err := netip.ParseAddr(address); err != nil || !ip.Is4() || ip.IsUnspecified() || ip.IsMulticast() {
		return nil, fmt.Errorf("create cluster %s: Spec.APIServerAddress %q is no IPv4 address of this machine, such as 192.168.1.5", name, address)
	}
	programs, err := e.Programs(ctx)
	if err != nil {
		return nil, err
	}
	a := &attempt{Embedded: e, name: name, address: address, nodes: 1 + spec.Workers, programs: programs}
	return a.run(ctx)
}

// attempt is one creation.
type attempt struct {
	*Embedded
	name     string
	address  string // of the API server
	nodes    int
	programs map[string]string
	handle   *handle
}

// run makes the control plane and waits until it is ready. It returns a cluster, or leaves none.
func (a *attempt) run(ctx context.Context) (c *clusters.Cluster, err error) {
	err = layout.MakeDir(a.state, a.name)
	if err == nil {
		err = os.Mkdir(a.dir(a.name), 0o700) // from now on the name is taken
	}
	if errors.Is(err, fs.ErrExist) {
		err = clusters.ErrExists
	}
	if err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", a.name, err)
	}
	defer func() {
		if c == nil {
			err = a.abandon(ctx, err)
		}
	}()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := a.start(); err != nil {
		return nil, err
	}
	made := &clusters.Cluster{Name: a.name, Provider: Identity, Kubeconfig: layout.Kubeconfig(a.state, a.name), Nodes: a.nodes}
	made.Version, err = a.awaitReady(ctx, made)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// start writes everything that the programs read, and starts them.
func (a *attempt) start() error {
	port, err := freePort(a.address)
	if err != nil {
		return err
	}
	dir := a.dir(a.name)
	token, err := a.writeIdentities(dir, fmt.Sprintf("https://%s:%d", a.address, port))
	if err != nil {
		return err
	}
	for file, data := range map[string][]byte{
		stagesFile: stages, egressFile: []byte(egress), nodesFile: fmt.Append(nil, a.nodes),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), data, 0o600); err != nil {
			return err
		}
	}
	if a.handle, err = startSupervisor(dir, newPlan(a.programs, a.address, port, token)); err != nil {
		return err
	}
	a.handles.Store(a.name, a.handle)
	return nil
}

// lowestPort to highestPort lie below the range that kernels draw ports from by themselves, so that nobody gets one by
// accident between our look and its use.
const lowestPort, highestPort = 11000, 30000

// freePort is a port of that address that nobody listens on right now.
func freePort(address string) (int, error) {
	for range highestPort - lowestPort {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		l, err := net.Listen("tcp", fmt.Sprintf("%s:%d", address, port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("find a free port of %s between %d and %d", address, lowestPort, highestPort)
}

// programEnded says which program ended, and why.
func (a *attempt) programEnded() error {
	text := a.logTail("supervisor")
	if name, _, ok := strings.Cut(text, " ended: "); ok {
		return fmt.Errorf("%s:\n\t%s", text, a.logTail(name))
	}
	return errors.New("the control plane ended: " + text)
}

// logTail is the end of a program's log, where the reason stands.
func (a *attempt) logTail(program string) string {
	const keep = 5
	data, err := os.ReadFile(logOf(a.dir(a.name), program))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "\n\t")
}

// abandon cleans up after err. The logs of a creation that was not cancelled are kept.
func (a *attempt) abandon(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("create cluster %s: %w", a.name, ended)
	} else {
		what, logs := "cannot create cluster "+a.name, layout.Artifacts(a.state, a.name)
		if a.handle != nil && a.CollectLogs(ctx, a.name, logs) == nil {
			what += ", logs in " + logs
		}
		err = &clusters.Problem{What: what, Err: err}
	}
	return errors.Join(err, a.Delete(context.WithoutCancel(ctx), a.name))
}
