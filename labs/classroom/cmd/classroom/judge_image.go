package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli"
)

func newJudgeImageCommand(a *app) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "judge-image",
		Short: "Make the image of a Pod that judges (make judge-image)",
		Long: `judge-image writes an image to a file. A Pod of it judges a workspace on a Kubernetes that you have, with a control
plane of its own; docs/hosted.md tells how. It takes some minutes, a container engine, and 5 GB of disk meanwhile.`,
		Args: cli.NoArguments("judge-image"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if file == "" {
				file = filepath.Join(a.State, "judge-image.tar")
			}
			return a.judgeImage(cmd.Context(), file)
		},
	}
	cmd.Flags().StringVar(&file, "file", "", "where to write it (default: .lab/judge-image.tar)")
	return cmd
}

func (a *app) judgeImage(ctx context.Context, file string) error {
	if err := clusters.PingEngine(ctx, a.Engine()); err != nil {
		return err
	}
	c, err := a.Course()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("make the judge's image: %w", err)
	}
	image := judge.Image{Course: c, Engine: a.Engine(), Cache: a.Cache, Progress: a.Progress}
	if err := image.Write(ctx, file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("make the judge's image: %w", err)
	}
	fmt.Fprintf(a.Out, "%s, %s: %s\n", file, modules.Megabytes(info.Size()), hosted.ImageRef)
	fmt.Fprintf(a.Out, "`%s load --input %s` loads it; docs/hosted.md has the Pod.\n", a.Engine(), file)
	return nil
}
