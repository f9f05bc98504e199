package main

import (
	"context"

	"github.com/example/operator-lab/clusters"
)

// playgroundPurpose marks the cluster of `lab up` among those of this checkout.
const playgroundPurpose = "up"

// playground finds the cluster of `lab up`; nil if there is none.
func (a *app) playground(ctx context.Context) (*clusters.Owner, error) {
	owners, err := a.Owners(ctx)
	for _, owner := range owners {
		if owner.Purpose == playgroundPurpose && owner.Kept && owner.Cluster != nil {
			return &owner, nil
		}
	}
	return nil, err
}

// healthy says whether the cluster of a record can be worked with.
func (a *app) healthy(ctx context.Context, owner *clusters.Owner) error {
	owned, err := a.owner(*owner)
	if err != nil {
		return err
	}
	return clusters.Healthy(ctx, owned.Provider(), owner.Cluster)
}
