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
come back, scale, be refused size 6, let an autoscaler decide, delete it all while a registry is away. Each step runs
the command that it shows, and tells who did what about it.

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
	path, err := a.kubectlPath(ctx)
	if err != nil {
		return err
	}
	a.Progress("compiling the operator and creating a cluster, which takes about 30 s")
	bin := filepath.Join(a.State, "bin")
	var cluster *clusters.Cluster
	defer func() {
		if cluster != nil && !keep {
			err = errors.Join(err, deleteCluster(ctx, owned, cluster))
		}
	}()
	g, preparation := errgroup.WithContext(ctx)
	g.Go(func() error { return demo.Build(preparation, a.Root, bin) })
	g.Go(func() (err error) {
		spec := a.Spec(owned, image)
		spec.Label, spec.Keep = "demo", keep
		cluster, err = owned.Create(preparation, spec)
		return err
	})
	if err := g.Wait(); err != nil {
		return err
	}
	stage, err := a.stage(cluster, path)
	if err != nil {
		return err
	}
	if err := stage.Show(ctx, a.Root, bin); err != nil {
		return err
	}
	if keep {
		fmt.Fprintf(a.Out, "The cluster stays, without the operator: export KUBECONFIG=%s; `make down` removes it.\n", cluster.Kubeconfig)
	}
	return nil
}

// stage is where the demo and lab 0 run their commands.
func (a *app) stage(cluster *clusters.Cluster, path string) (demo.Stage, error) {
	s := demo.Stage{Cluster: cluster, Operand: memcached.Image, Dir: filepath.Join(a.State, "artifacts", cluster.Name), Path: path, Out: a.Out}
	if err := os.MkdirAll(s.Dir, 0o755); err != nil {
		return s, fmt.Errorf("keep what the commands write: %w", err)
	}
	return s, nil
}
