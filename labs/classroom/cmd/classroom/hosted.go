package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/classroom/hosting"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func newHostedCommand(a *app) *cobra.Command {
	var o hosting.Options
	cmd := &cobra.Command{
		Use:   "hosted",
		Short: "Prepare a Kubernetes that you have for verdicts on others' code",
		Long: `hosted works on the cluster of KUBECONFIG's current context, or of ~/.kube/config. Verdicts there are Jobs; docs/hosted.md
tells what the cluster has to have.`,
	}
	flags := cmd.PersistentFlags()
	flags.StringVar(&o.Namespace, "namespace", hosting.DefaultNamespace, "where verdicts are made")
	flags.StringVar(&o.Image, "image", hosted.ImageRef, "what the cluster calls the image of make judge-image")
	flags.IntVar(&o.Verdicts, "verdicts", 2, "how many there may be at a time, each with a Pod that waits for it")
	flags.StringVar(&o.RuntimeClass, "runtime-class", "", "what runs the containers of a learner's code, such as gvisor (default: the cluster's own)")
	add := func(name, short string, do func(context.Context, client.Client) error) {
		cmd.AddCommand(&cobra.Command{
			Use: name, Short: short, Args: cli.NoArguments("hosted " + name),
			RunE: func(cmd *cobra.Command, _ []string) error {
				if err := o.Check(); err != nil {
					return exit.Usage("%v", err)
				}
				config, _, err := hosted.Config()
				if err != nil {
					return exit.Usage("%v", err)
				}
				c, err := client.New(config, client.Options{})
				if err != nil {
					return exit.Environment(err)
				}
				return do(cmd.Context(), c)
			},
		})
	}
	add("install", "Print what will be applied, ask, and apply it", func(ctx context.Context, c client.Client) error {
		fmt.Fprint(a.Out, o.Manifest())
		if err := a.Agree(a.AtTerminal(), "All of this will be applied to the cluster.", "nothing was changed"); err != nil {
			return err
		}
		return hosting.Install(ctx, c, o, a.Progress)
	})
	add("doctor", "Say what is missing, and try whether code in a sandbox reaches anything", func(ctx context.Context, c client.Client) error {
		judges, _, err := hosted.Connect("")
		if err != nil {
			return exit.Usage("%v", err)
		}
		judges.Namespace, judges.Progress = o.Namespace, a.Progress
		return hosting.Doctor(ctx, c, judges, o, a.Progress)
	})
	add("uninstall", "Remove the namespace with all that is in it, and the queue", func(ctx context.Context, c client.Client) error {
		if err := a.Agree(a.AtTerminal(), "The namespace "+o.Namespace+" goes, with all that is in it.", "nothing was changed"); err != nil {
			return err
		}
		return hosting.Uninstall(ctx, c, o, a.Progress)
	})
	return cmd
}
