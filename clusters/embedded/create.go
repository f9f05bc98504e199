package embedded

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded/supervisor"
)

const (
	// ReadyTimeout is how long a control plane may take until everything works: 4 s
	// on an idle machine, and many times that where every core is taken.
	ReadyTimeout = 2 * time.Minute
	// attempts is how often a creation is begun when another program took the API
	// server's port between our choice and its use.
	attempts = 3
)

// stages is kwok's configuration: what becomes of nodes and Pods.
//
//go:embed stages.yaml
var stages []byte

// Create starts a control plane and waits until a Pod would be scheduled and run.
// When it fails, the logs are under artifacts/NAME of the state directory and
// nothing else is left; an error that is not the caller's ending of ctx is a
// *clusters.Problem.
func (e *Embedded) Create(ctx context.Context, name string, spec clusters.Spec) (*clusters.Cluster, error) {
	if err := clusters.CheckName(name); err != nil {
		return nil, err
	}
	if spec.Config != nil || spec.Workers < 0 {
		return nil, fmt.Errorf("create cluster %s: embedded clusters support neither Spec.Config nor negative Spec.Workers", name)
	}
	address := cmp.Or(spec.APIServerAddress, loopback)
	if err := clusters.CheckAddress(address); err != nil {
		return nil, fmt.Errorf("create cluster %s: %w", name, err)
	}
	if exists(e.plane(name)) {
		return nil, fmt.Errorf("create cluster %s: %w", name, clusters.ErrExists)
	}
	programs, err := e.Programs(ctx)
	if err != nil {
		return nil, err
	}
	for n := 1; ; n++ {
		a := &attempt{
			Embedded: e, name: name, address: address, forOthers: spec.ForOthers || address != loopback,
			nodes: 1 + spec.Workers, programs: programs,
		}
		c, err := a.run(ctx)
		if err == nil || n == attempts || !errors.Is(err, errPortTaken) {
			return c, err
		}
	}
}

// attempt is one creation.
type attempt struct {
	*Embedded
	name      string
	address   string // of the API server
	forOthers bool   // [clusters.Spec.ForOthers]
	nodes     int
	programs  map[string]string
	handle    *supervisor.Handle
}

// run makes the control plane and waits until it is ready. Whatever happens, a
// panic included, either a cluster is returned or none is left.
func (a *attempt) run(ctx context.Context) (c *clusters.Cluster, err error) {
	if err := a.makeFolder(); err != nil {
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
	version, err := a.awaitReady(ctx)
	if err != nil {
		return nil, err
	}
	return &clusters.Cluster{
		Name: a.name, Provider: Identity, Kubeconfig: clusters.Kubeconfig(a.state, a.name),
		Version: version, Nodes: a.nodes, Logs: true,
	}, nil
}

// makeFolder makes the folder of the control plane. That is the moment from which on the name is taken.
func (a *attempt) makeFolder() error {
	if err := clusters.MakeDir(a.state, a.name); err != nil {
		return err
	}
	err := os.Mkdir(a.plane(a.name), 0o700)
	if errors.Is(err, fs.ErrExist) {
		return clusters.ErrExists
	}
	return err
}

// start starts the programs.
func (a *attempt) start() (err error) {
	if err := a.prepare(); err != nil {
		return err
	}
	if a.handle, err = supervisor.Start(a.plane(a.name), a.supervisor...); err != nil {
		return err
	}
	a.hold(a.name, a.handle)
	return nil
}

// prepare writes everything that the programs read.
func (a *attempt) prepare() error {
	port, err := freePort(a.address)
	if err != nil {
		return err
	}
	plane := a.plane(a.name)
	server := fmt.Sprintf("https://%s:%d", a.address, port)
	if err := writeDescription(plane, description{Nodes: a.nodes, Server: server}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(plane, stagesFile), stages, 0o600); err != nil {
		return fmt.Errorf("write stages: %w", err)
	}
	if err := os.WriteFile(filepath.Join(plane, egressFile), []byte(egress), 0o600); err != nil {
		return fmt.Errorf("write egress rules: %w", err)
	}
	token, err := a.writeIdentities(plane, server)
	if err != nil {
		return err
	}
	return supervisor.WritePlan(plane, plan(a.programs, a.address, port, a.forOthers, token))
}

// lowestPort to highestPort lie below the range that kernels draw ports from by
// themselves, so that nobody gets one by accident between our look and its use.
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
	return 0, fmt.Errorf("find a free port between %d and %d", lowestPort, highestPort)
}

// errPortTaken is the one failure that trying again fixes.
var errPortTaken = errors.New("another program took the port")

// abandon cleans up after err. A creation that was cancelled is only removed; one
// that failed is documented first.
func (a *attempt) abandon(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		err = fmt.Errorf("create cluster %s: %w", a.name, ended)
	} else {
		err = a.failure(err)
	}
	return errors.Join(err, a.Delete(context.WithoutCancel(ctx), a.name))
}

// failure keeps the logs and says where they are.
func (a *attempt) failure(err error) error {
	what := "cannot create cluster " + a.name
	dir := filepath.Join(a.state, "artifacts", a.name)
	if a.handle != nil && a.CollectLogs(context.Background(), a.name, dir) == nil {
		what += ", logs in " + dir
	}
	if p, ok := errors.AsType[*clusters.Problem](err); ok {
		return &clusters.Problem{What: what + ": " + p.What, Fix: p.Fix, Err: p.Err}
	}
	return &clusters.Problem{What: what, Fix: "make doctor", Err: err}
}

// lastWords is the end of a program's log, where the reason stands.
func (a *attempt) lastWords(program string) string {
	const keep = 5
	data, err := os.ReadFile(supervisor.Log(a.plane(a.name), program))
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "\n\t")
}

// description is what a cluster was made as.
type description struct {
	Nodes int `json:"nodes"`
	// Server is the address of the API server.
	Server string `json:"server"`
}

const descriptionFile = "cluster.json"

func writeDescription(plane string, d description) error {
	data, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(filepath.Join(plane, descriptionFile), data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write description: %w", err)
	}
	return nil
}

func readDescription(plane string) (description, error) {
	var d description
	data, err := os.ReadFile(filepath.Join(plane, descriptionFile))
	if err == nil {
		err = json.Unmarshal(data, &d)
	}
	if err != nil {
		return d, fmt.Errorf("read description: %w", err)
	}
	return d, nil
}

func nodeName(cluster string, i int) string { return fmt.Sprintf("%s-node-%d", cluster, i) }
