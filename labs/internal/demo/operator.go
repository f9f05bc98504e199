package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// operatorName is the file name of the operator's program. client-go signs with it what the operator
// writes, and so it is the name that the timeline tells.
const operatorName = "memcached-operator"

// Programs are the compiled programs of a show.
type Programs struct {
	// Operator is the finished operator, Supervisor the program that ends it with us, whatever happens.
	Operator, Supervisor string
}

// Build compiles the programs into dir. With the Go build cache warm that is a matter of a second.
func Build(ctx context.Context, root, dir string) (Programs, error) {
	programs := Programs{Operator: filepath.Join(dir, operatorName), Supervisor: filepath.Join(dir, "supervisor")}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return programs, fmt.Errorf("build the operator: %w", err)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		broken, err := verdict.BuildManager(ctx, filepath.Join(root, "operator"), programs.Operator)
		if err == nil && broken != nil {
			err = fmt.Errorf("build the operator: %s", broken.Output)
		}
		return err
	})
	g.Go(func() error {
		env, err := process.BuildEnv(ctx)
		if err != nil {
			return err
		}
		cmd := process.Tool(ctx, root, dir, env, "go", "build", "-o", programs.Supervisor, "./labs/cmd/supervisor")
		if out, err := cmd.CombinedOutput(); err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("build supervisor: %w\n%s", err, out))
		}
		return nil
	})
	return programs, g.Wait()
}

// runningOperator is the running operator.
type runningOperator struct {
	parentPipe *os.File // the supervisor ends the operator when this is closed, by us or by our death
	log        *os.File
	ended      chan struct{} // closed when the process is gone
	state      string        // how it ended; read it when ended is closed
}

// startOperator runs the operator with the cluster's kubeconfig and the URL of a registry. It does not wait for
// anything: an operator that comes late catches up.
func startOperator(s Show, registryURL string) (*runningOperator, error) {
	log, err := os.Create(s.Log)
	if err != nil {
		return nil, fmt.Errorf("keep the operator's log: %w", err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a parent pipe: %w", err), log.Close())
	}
	defer theirs.Close()
	cmd := exec.Command(s.Programs.Supervisor, s.Programs.Operator,
		"--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0",
		"--metrics-secure=false", "--leader-elect=false")
	cmd.Dir = filepath.Dir(s.Log)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "KUBECONFIG=" + s.Cluster.Kubeconfig,
		"MEMCACHED_IMAGE=" + s.Operand, "ENABLE_WEBHOOKS=false", "REGISTRY_URL=" + registryURL,
	}
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the operator: %w", err), ours.Close(), log.Close())
	}
	o := &runningOperator{parentPipe: ours, log: log, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		o.state = cmd.ProcessState.String()
		close(o.ended)
	}()
	return o, nil
}

// stop ends the operator and returns when its whole process tree is gone.
func (o *runningOperator) stop() error {
	err := o.parentPipe.Close()
	<-o.ended
	return errors.Join(err, o.log.Close())
}

// gone is an error once the operator has ended by itself.
func (o *runningOperator) gone() error {
	return fmt.Errorf("the operator ended by itself (%s); its log is %s", o.state, o.log.Name())
}
