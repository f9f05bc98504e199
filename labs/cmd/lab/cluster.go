package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// playgroundLabel marks the cluster of `lab up` among those of this checkout.
const playgroundLabel = "up"

func (a *app) up(ctx context.Context, _ []string) error {
	unlock, err := a.Lock("playground", "the cluster to play with")
	if err != nil {
		return err
	}
	defer unlock()
	c, err := a.playground(ctx)
	if err == nil && c == nil {
		c, err = a.startPlayground(ctx)
	}
	if err != nil {
		return err
	}
	a.Say(`Cluster %s runs Kubernetes %s.
`+"`make shell` opens a shell that talks to it; there, `make install` in your workspace installs your CRD. `make down` removes it."+`
In a shell of your own:
  export KUBECONFIG=%s`, c.Name, c.Version, c.Kubeconfig)
	return nil
}

// playground finds the cluster of `lab up`, which has to be healthy; nil if there is none.
func (a *app) playground(ctx context.Context) (*clusters.Cluster, error) {
	c, owned, err := a.kept(ctx, playgroundLabel)
	if err == nil && c != nil {
		err = owned.Healthy(ctx, c)
	}
	return c, err
}

// image builds an image of the workspace's program, and brings it onto the nodes of the cluster of `lab up`.
func (a *app) image(ctx context.Context, _ []string) error {
	c, owned, err := a.kept(ctx, playgroundLabel)
	switch {
	case err != nil:
		return err
	case c == nil || !c.RealPods:
		return &clusters.Problem{What: "there is no cluster to play with whose nodes run containers", Fix: "make down && make up CLUSTER=kind"}
	}
	failed, err := verdict.LoadImage(ctx, owned, c.Name, a.workspace, verdict.ManagerImage)
	if err != nil {
		return err
	}
	if failed != nil {
		a.Say("Your operator does not compile:\n%s", failed.Output)
		return exit.ErrFail
	}
	a.Say(`The nodes of cluster %s have your operator as %s. In your workspace, in `+"`make shell`"+`:
  make deploy IMG=%[2]s`, c.Name, verdict.ManagerImage)
	return nil
}

// kept finds the cluster of that label which was kept, and its manager; nil if there is none.
func (a *app) kept(ctx context.Context, label string) (*clusters.Cluster, *clusters.Manager, error) {
	owners, err := a.Records(ctx)
	for _, o := range owners {
		if o.Label == label && o.Kept && o.Cluster != nil {
			owned, err := a.Owned(o.Provider)
			return o.Cluster, owned, err
		}
	}
	return nil, nil, err
}

func (a *app) startPlayground(ctx context.Context) (*clusters.Cluster, error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return nil, err
	}
	a.Progress("starting a cluster, which takes some seconds")
	spec := a.Spec(owned, image)
	spec.Label, spec.Keep = playgroundLabel, true
	return owned.Create(ctx, spec)
}

func newDownCommand(a *app) *cobra.Command {
	var all bool
	cmd := cli.Command("down", `Remove everything that this checkout still runs, and say what

Clusters that another command is using right now stay, and so do those of learners in a classroom; with --all both go.
Nothing that this checkout did not start is ever removed.`, cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.down(ctx, all) })
	cmd.Flags().BoolVar(&all, "all", false, "also remove clusters of running commands, and of learners in a classroom")
	return cmd
}

func (a *app) down(ctx context.Context, all bool) error {
	owners, err := a.Records(ctx)
	errs := []error{err}
	for _, o := range owners {
		// Verdicts recommend make down for more memory; learners may not lose their clusters by it.
		if ofLearner := o.Kept && o.Label == cli.LearnerLabel; !all && (ofLearner || !o.Kept && o.Alive()) {
			a.Say("Left cluster %s of %s (`make down ALL=1` removes it all the same).", o.Name, userOf(o))
			continue
		}
		owned, err := a.Owned(o.Provider)
		if err == nil {
			err = owned.Delete(ctx, o.Name)
		}
		if err == nil {
			a.Say("Removed cluster %s.", o.Name)
		}
		errs = append(errs, err)
	}
	if len(owners) == 0 && err == nil {
		a.Say("Nothing was running.")
	}
	return errors.Join(errs...)
}

func (a *app) status(ctx context.Context, _ []string) error {
	owners, err := a.Records(ctx)
	if len(owners) == 0 {
		if err == nil {
			a.Say("Nothing is running.")
		}
		return err
	}
	rows := [][]string{{"CLUSTER", "FOR", "AGE", "OWNER"}}
	for _, o := range owners {
		rows = append(rows, []string{o.Name, o.Label, time.Since(o.Created).Round(time.Second).String(), userOf(o)})
	}
	return errors.Join(err, plain.Table(a.Out, rows...))
}

// userOf is who uses the cluster.
func userOf(o clusters.Record) string {
	switch {
	case o.Kept && o.Label == cli.LearnerLabel:
		return "a classroom"
	case o.Kept:
		return "kept until make down"
	case o.Alive():
		return fmt.Sprintf("process %d", o.PID)
	default:
		return "left behind; the next command removes it"
	}
}

func (a *app) shell(ctx context.Context, _ []string) error {
	c, err := a.playground(ctx)
	if err != nil {
		return err
	}
	if c == nil {
		return &clusters.Problem{What: "there is no cluster to talk to", Fix: "make up"}
	}
	path, err := a.KubectlPath(ctx)
	if err != nil {
		return err
	}
	a.Notice("kubectl talks to " + c.Name + " here; exit ends the shell, not the cluster")
	const mark = `PROMPT_COMMAND=PS1="(lab) ${PS1#"(lab) "}"` // for bash
	return a.runShell(exec.Command(cmp.Or(os.Getenv("SHELL"), "/bin/sh")), a.Root, mark, "KUBECONFIG="+c.Kubeconfig, "LAB_CLUSTER="+c.Name, "MEMCACHED_IMAGE="+memcached.Image, "PATH="+path)
}

// runShell runs a shell without the command's context, because Ctrl-C is for what runs in the shell. The exit code of the last
// command that was typed is no error.
func (a *app) runShell(cmd *exec.Cmd, dir string, env ...string) error {
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return fmt.Errorf("run shell: %w", err)
	}
	return nil
}
