package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// newUpCommand is `lab up`.
func newUpCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "up",
		Short: "Start a cluster to play with, with your CRD if there is one",
		Long: `Start a cluster to play with. It stays until lab down, and no lab is judged on it.

When config/crd/bases of the workspace holds custom resource definitions, they are installed. Running it again
installs them anew in the cluster that is there.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.up(cmd.Context()) },
	}
}

func (a *app) up(ctx context.Context) error {
	unlock, err := a.lockPlayground()
	if err != nil {
		return err
	}
	defer unlock()
	owner, err := a.playground(ctx)
	if err != nil {
		return err
	}
	var c *clusters.Cluster
	if owner == nil {
		c, err = a.startPlayground(ctx)
	} else {
		c, err = owner.Cluster, a.healthy(ctx, owner)
	}
	if err != nil {
		return err
	}
	if err := a.installCRDs(ctx, c); err != nil {
		// The cluster is what was asked for; a broken CRD is what it is there to find out about.
		a.Progress(fmt.Sprintf("your CRD is not installed: %v", err))
	}
	a.explainPlayground(c)
	return nil
}

// lockPlayground keeps two commands from starting two clusters to play with.
func (a *app) lockPlayground() (unlock func(), err error) {
	dir := filepath.Join(a.State, "locks")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("lock the playground: %w", err)
	}
	lock := flock.New(filepath.Join(dir, "playground"))
	locked, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock the playground: %w", err)
	}
	if !locked {
		return nil, exit.Usage("another lab up is at work: wait for it to end")
	}
	return func() { _ = lock.Unlock() }, nil
}

// startPlayground makes the cluster and sees to it that it has the operand's image.
func (a *app) startPlayground(ctx context.Context) (*clusters.Cluster, error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return nil, err
	}
	a.Progress("starting a cluster, which takes some seconds")
	return owned.Create(ctx, playgroundPurpose, a.Spec("", owned, image), true)
}

func (a *app) explainPlayground(c *clusters.Cluster) {
	fmt.Fprintf(a.Out, `Cluster %s runs Kubernetes %s.

  make shell    a shell that talks to it
  make down     removes it

In a shell of your own:

  export KUBECONFIG=%s
`, c.Name, c.Version, c.Kubeconfig)
}
