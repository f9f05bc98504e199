package main

import (
	"context"

	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// checkHosted has the cluster of the kubeconfig judge.
func (a *app) checkHosted(ctx context.Context, c *course.Course, image string, q hosted.Request) error {
	judges, where, err := hosted.Connect(ctx, image)
	if err != nil {
		return exit.Usage("CLUSTER=hosted: %v", err)
	}
	a.Progress("a Job in " + where + " judges")
	judges.Progress = a.Progress
	result, err := judges.Check(ctx, a.workspace, q)
	if err != nil {
		return err
	}
	results := []*verdict.Result{result}
	if err := verdict.Adopt(a.State, results); err != nil {
		return err
	}
	a.answer(c, results, nil, false)
	a.report(ctx, results)
	return verdict.Worst(results).Err()
}
