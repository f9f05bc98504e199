package main

import (
	"context"

	"github.com/example/operator-lab/clusters"
)

// playgroundPurpose marks the cluster of `lab up` among those of this checkout.
const playgroundPurpose = "up"

// playground finds the cluster of `lab up`; nil if there is none.
func (a *app) playground(ctx context.Context, owned *clusters.Owned) (*clusters.Cluster, error) {
	owners, err := owned.List(ctx)
	for _, owner := range owners {
		if owner.Purpose == playgroundPurpose && owner.Kept && owner.Cluster != nil {
			return owner.Cluster, nil
		}
	}
	return nil, err
}
