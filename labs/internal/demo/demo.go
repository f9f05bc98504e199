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

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/internal/plain"
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
	for _, build := range [][]string{
		{"go", "-C", "operator", "build", "-o", filepath.Join(dir, operatorName), "./cmd"},
		{"go", "-C", ".", "build", "-o", filepath.Join(dir, "supervisor"), "./labs/cmd/supervisor"},
	} {
		if out, err := process.Tool(ctx, root, os.TempDir(), env, build[0], build[1:]...).CombinedOutput(); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("build %s: %w\n%s", build[5], err, out))
		}
	}
	return nil
}

// Show performs the steps of the demo with the programs that [Build] has put into bin. When it returns, the operator has ended; the
// cluster is the caller's to delete. An error says what did not happen, and where the operator's log is.
func (s Stage) Show(ctx context.Context, root, bin string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var steps []step
	if err := yaml.UnmarshalStrict(demoSteps, &steps); err != nil {
		return fmt.Errorf("read the steps: %w", err)
	}
	// The definition comes first: the garbage collector looks for new kinds every 30 s, and the last step waits for it.
	definition := filepath.Join(root, "operator", "config", "crd", "bases", "cache.example.com_memcacheds.yaml")
	output, err := s.shell(ctx, fmt.Sprintf("kubectl create -f %q && kubectl wait --for=condition=Established crd --all", definition))
	if err != nil {
		return fmt.Errorf("install the definition of Memcached: %w\n%s", err, output)
	}
	if err := s.open(ctx, schema.GroupVersionKind{Group: "cache.example.com", Version: "v1alpha1", Kind: "Memcached"}); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.Dir, "operator.log"))
	if err != nil {
		return fmt.Errorf("keep the operator's log: %w", err)
	}
	defer log.Close()
	operator, err := process.Supervised(ctx, filepath.Join(bin, "supervisor"), -1, filepath.Join(bin, operatorName),
		"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0", "--metrics-secure=false", "--leader-elect=false")
	if err != nil {
		return err
	}
	operator.Env = []string{"KUBECONFIG=" + s.Cluster.Kubeconfig, "MEMCACHED_IMAGE=" + s.Operand, "ENABLE_WEBHOOKS=false"}
	operator.Dir, operator.Stdout, operator.Stderr = s.Dir, log, log
	if err := operator.Start(); err != nil {
		return fmt.Errorf("start the operator: %w", err)
	}
	defer func() { cancel(); _ = operator.Wait() }()
	fmt.Fprintf(s.Out, "The finished operator at work, as a local process, on Kubernetes %s.\n", s.Cluster.Version)
	for i, step := range steps {
		if _, err := s.perform(ctx, i+1, step); err != nil {
			return fmt.Errorf("step %d of the demo: %w", i+1, err)
		}
		fmt.Fprintln(s.Out)
		s.paragraph("", step.Why)
	}
	fmt.Fprint(s.Out, plain.Fold("", "\nThis is what you are going to write, from labs/01-types/README.md on: `make lab-1`."))
	return nil
}
