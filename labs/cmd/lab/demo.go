package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/demo"
	"github.com/example/operator-lab/labs/internal/memcached"
)

// newDemoCommand is `lab demo`.
func newDemoCommand(a *app) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Watch the finished operator at work, in two minutes",
		Long: `Watch the finished operator at work on a fresh cluster: create a Memcached, delete its Deployment and see it
come back, scale, be refused size 6, let an autoscaler decide, delete it all while a registry is away. Each step shows
what one would type and who did what about it.

Your workspace plays no part in it. Afterwards nothing is left, unless --keep is given.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), keep) },
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the cluster running for a look at it; make down removes it")
	return cmd
}

func (a *app) demo(ctx context.Context, keep bool) (err error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	a.Progress("compiling the operator and creating a cluster, which takes about 30 s")
	var programs demo.Programs
	var cluster *clusters.Cluster
	defer func() {
		if cluster != nil && !keep {
			err = errors.Join(err, deleteCluster(ctx, owned, cluster))
		}
	}()
	g, preparation := errgroup.WithContext(ctx)
	g.Go(func() (err error) {
		programs, err = demo.Build(preparation, a.Root, filepath.Join(a.State, "bin"))
		return err
	})
	g.Go(func() (err error) {
		spec := a.Spec(owned, image)
		spec.Label, spec.Keep = "demo", keep
		cluster, err = owned.Create(preparation, spec)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	show := demo.Show{
		Root: a.Root, Programs: programs, Cluster: cluster, Operand: memcached.Image,
		Log: filepath.Join(a.State, "artifacts", cluster.Name, "operator.log"), Out: a.Out,
	}
	if err := os.MkdirAll(filepath.Dir(show.Log), 0o755); err != nil {
		return fmt.Errorf("keep the operator's log: %w", err)
	}
	if err := show.Run(ctx); err != nil {
		return err
	}
	if keep {
		fmt.Fprintf(a.Out, "The cluster stays, without the operator: export KUBECONFIG=%s; `make down` removes it.\n", cluster.Kubeconfig)
	}
	return nil
}
