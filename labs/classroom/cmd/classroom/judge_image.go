package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/hosted"
)

func newJudgeImageCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "judge-image",
		Short: "Make the image of a Pod that judges (make judge-image)",
		Long: `judge-image makes an image with the container engine. A Pod of it judges a workspace on a Kubernetes that you have, with a
control plane of its own; docs/hosted.md tells how. It takes some minutes, and 6 GB of disk.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.judgeImage(cmd.Context()) },
	}
}

func (a *app) judgeImage(ctx context.Context) error {
	if err := a.PingEngine(ctx); err != nil {
		return err
	}
	c, err := a.Course()
	if err != nil {
		return err
	}
	kit, err := judge.NewKit(ctx, c, a.State, a.Cache, a.Progress)
	if err != nil {
		return err
	}
	a.Progress("packing: some minutes")
	if err := kit.Build(ctx, a.Engine(), hosted.ImageRef); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "%s is in %s now; docs/hosted.md has the Pod.\n", hosted.ImageRef, a.Engine())
	return nil
}
