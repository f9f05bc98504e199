package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// A cluster in which nobody works takes less (docs/performance.md). The reserve is for a board, a browser and a compiler.
const clusterMemory, reservedMemory = 600 << 20, 1 << 30

func newUpCommand(a *app) *cobra.Command {
	var n int
	var address string
	cmd := cli.Command("up", "A cluster for each learner; run again, it makes what is missing (make classroom N=12)", cobra.NoArgs,
		func(ctx context.Context, _ []string) error { return a.up(ctx, n, address) })
	cmd.Flags().IntVar(&n, "learners", 0, "number of learners")
	cmd.Flags().StringVar(&address, "address", loopback, "address of this machine on which learners reach their clusters, which are embedded then")
	return cmd
}

func (a *app) up(ctx context.Context, n int, address string) error {
	switch err := checkAddress(address); {
	case n < 1:
		return exit.Usage("N is missing: make classroom N=12 makes clusters for twelve learners")
	case err != nil:
		return err
	case address != loopback && a.Cluster == cli.Kind:
		return exit.Usage("CLUSTER=kind with ADDRESS: whoever has the kubeconfig of a kind cluster can be root on its machine, by a privileged Pod; leave CLUSTER out")
	case address != loopback:
		a.Cluster = cli.Embedded
	}
	there, _ := a.learners(ctx, address)
	var missing []string
	for i := range n {
		if name := fmt.Sprintf("learner-%d", i+1); !slices.Contains(there, name) {
			missing = append(missing, name)
		}
	}
	free, known := doctor.FreeMemory()
	if fit := int((max(free, reservedMemory) - reservedMemory) / clusterMemory); known && len(missing) > fit {
		return exit.Usage("this machine has free memory for N=%d, not for N=%d", n-len(missing)+fit, n)
	}
	owned, image, err := a.Ready(ctx, n)
	if err != nil {
		return err
	}
	spec := a.Spec(owned, image)
	spec.Label, spec.Keep, spec.APIServerAddress = cli.LearnerLabel, true, address
	a.Say("Making %d of %d clusters. `make status` lists those that are ready; the kubeconfig of learner-1 will be %s.", len(missing), n, owned.Kubeconfig("learner-1"))
	return fill(ctx, owned, spec, missing)
}

// fill makes the clusters of those names, as many at a time as there are cores. One that fails keeps nobody else from theirs.
func fill(ctx context.Context, owned *clusters.Manager, spec clusters.Spec, names []string) error {
	var group errgroup.Group
	group.SetLimit(runtime.GOMAXPROCS(0))
	for _, name := range names {
		group.Go(func() error {
			spec := spec
			spec.Name = name
			_, err := owned.Create(ctx, spec)
			return err
		})
	}
	return group.Wait()
}
