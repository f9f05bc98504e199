// Package demo shows the finished operator, or Kubernetes alone, at work on a fresh cluster: it runs the commands that it shows, and
// tells who did what about them. Nothing of it is acted: the actions are those of package trace.
package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/example/operator-lab/labs/internal/process"
)

// operatorName is the file name of the operator's program. client-go signs with it what the operator writes, so that it is the actor.
const operatorName = "memcached-operator"

//go:embed demo.yaml
var demoSteps []byte

// Build compiles the operator of the checkout at root, and the program that ends it with this process, into dir.
func Build(ctx context.Context, root, dir string) error {
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("build the operator: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	for program, source := range map[string][2]string{operatorName: {"operator", "./cmd"}, "supervisor": {"", "./labs/cmd/supervisor"}} {
		g.Go(func() error {
			cmd := process.Tool(ctx, filepath.Join(root, source[0]), dir, env, "go", "build", "-o", filepath.Join(dir, program), source[1])
			if out, err := cmd.CombinedOutput(); err != nil {
				return errors.Join(ctx.Err(), fmt.Errorf("build %s: %w\n%s", program, err, out))
			}
			return nil
		})
	}
	return g.Wait()
}

// Show performs the steps of the demo with the programs that [Build] has put into bin. When it returns, the operator has ended; the
// cluster is the caller's to delete. An error says what did not happen, and where the operator's log is.
func (s Stage) Show(ctx context.Context, root, bin string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	steps, err := readSteps(demoSteps)
	if err != nil {
		return err
	}
	// The definition comes first of all: the garbage collector looks for new kinds every 30 s, and the last step waits for it. The
	// API server keeps the first creation of a new kind waiting for up to 2 s, which a dry run takes.
	definition := filepath.Join(root, "operator", "config", "crd", "bases", "cache.example.com_memcacheds.yaml")
	prepare := fmt.Sprintf("kubectl create -f %q", definition) + ` &&
kubectl wait --for=condition=Established crd/memcacheds.cache.example.com && kubectl get memcacheds &&
echo '{"apiVersion": "cache.example.com/v1alpha1", "kind": "Memcached", "metadata": {"name": "cache"}, "spec": {}}' | kubectl create --dry-run=server -f -`
	if output, err := s.shell(ctx, prepare); err != nil {
		return fmt.Errorf("install the definition of Memcached: %w\n%s", err, output)
	}
	v, err := s.open(ctx, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"})
	if err != nil {
		return err
	}
	if err := v.startOperator(ctx, bin); err != nil {
		return err
	}
	defer func() { cancel(); <-v.ended }()
	fmt.Fprintf(s.Out, "%s\n%s, Kubernetes %s. The operator runs as a process on this machine.\n",
		bold("The finished operator at work"), s.Cluster.Name, s.Cluster.Version)
	for i, step := range steps {
		if _, err := v.perform(ctx, i+1, step); err != nil {
			return fmt.Errorf("step %d of the demo: %w", i+1, err)
		}
		fmt.Fprintln(s.Out)
		s.paragraph("   ", step.Why)
	}
	fmt.Fprintln(s.Out, "\nThis is what you are going to write, from labs/01-types/README.md on: `make lab-1`.")
	return nil
}

// startOperator runs the operator until ctx ends. It ends with this process, too.
func (v *view) startOperator(ctx context.Context, bin string) error {
	log, err := os.Create(filepath.Join(v.Dir, "operator.log"))
	if err != nil {
		return fmt.Errorf("keep the operator's log: %w", err)
	}
	defer log.Close()
	cmd, err := process.Supervised(ctx, filepath.Join(bin, "supervisor"), -1, filepath.Join(bin, operatorName),
		"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--leader-elect=false")
	if err != nil {
		return err
	}
	cmd.Env = []string{"KUBECONFIG=" + v.Cluster.Kubeconfig, "MEMCACHED_IMAGE=" + v.Operand, "ENABLE_WEBHOOKS=false"}
	cmd.Dir, cmd.Stdout, cmd.Stderr = v.Dir, log, log
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	ended := make(chan struct{})
	v.ended = ended
	go func() { _ = cmd.Wait(); close(ended) }()
	return nil
}
