package main

import (
	"context"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/outbox"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// answerFunc is told the results of a check, before its cluster is deleted.
type answerFunc func([]*verdict.Result, *clusters.Cluster)

// reporting makes answer tell the room's board as well, if there is one, while the cluster is being deleted.
// sent waits for what is left of that, a second at most.
func (a *app) reporting(ctx context.Context, answer answerFunc) (reported answerFunc, sent func()) {
	wait := func() {}
	reported = func(results []*verdict.Result, cluster *clusters.Cluster) {
		answer(results, cluster)
		wait = outbox.Report(ctx, a.State, results, a.Progress)
	}
	return reported, func() { wait() }
}
