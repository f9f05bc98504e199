package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
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
	fmt.Fprintf(a.Out, `Cluster %s runs Kubernetes %s.
`+"`make shell` opens a shell that talks to it; there, `make install` in your workspace installs your CRD. `make down` removes it."+`
In a shell of your own: export KUBECONFIG=%s
`, c.Name, c.Version, c.Kubeconfig)
	return nil
}

// playground finds the cluster of `lab up`, which has to be healthy; nil if there is none.
func (a *app) playground(ctx context.Context) (*clusters.Cluster, error) {
	owners, err := a.Records(ctx)
	for _, o := range owners {
		if o.Label == playgroundLabel && o.Kept && o.Cluster != nil {
			owned, err := a.Owned(o.Provider)
			if err != nil {
				return nil, err
			}
			return o.Cluster, owned.Healthy(ctx, o.Cluster)
		}
	}
	return nil, err
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

Clusters that another command is using right now stay, and so do those of a classroom, which classroom down removes; with --all both go.
Nothing that this checkout did not start is ever removed.`, cobra.NoArgs, func(ctx context.Context, _ []string) error { return a.down(ctx, all) })
	cmd.Flags().BoolVar(&all, "all", false, "also remove clusters that running commands are using, and those of the classroom")
	return cmd
}

func (a *app) down(ctx context.Context, all bool) error {
	owners, err := a.Records(ctx)
	errs := []error{err}
	for _, o := range owners {
		switch {
		case ofRoom(o) && !all:
			fmt.Fprintf(a.Out, "Left cluster %s of the classroom (make classroom-down removes it).\n", o.Name)
			continue
		case !o.Kept && o.Alive() && !all:
			fmt.Fprintf(a.Out, "Left cluster %s: process %d is using it (lab down --all removes it all the same).\n", o.Name, o.PID)
			continue
		}
		owned, err := a.Owned(o.Provider)
		if err == nil {
			err = owned.Delete(ctx, o.Name)
		}
		if err == nil {
			fmt.Fprintf(a.Out, "Removed cluster %s.\n", o.Name)
		}
		errs = append(errs, err)
	}
	if len(owners) == 0 && err == nil {
		fmt.Fprintln(a.Out, "Nothing was running.")
	}
	return errors.Join(errs...)
}

// ofRoom says that learners work in the cluster. The doctor and verdicts recommend make down for more memory or disk; it must not
// remove these clusters.
func ofRoom(o clusters.Record) bool { return o.Kept && o.Label == cli.RoomLabel }

func (a *app) status(ctx context.Context, _ []string) error {
	owners, err := a.Records(ctx)
	if len(owners) == 0 {
		if err == nil {
			fmt.Fprintln(a.Out, "Nothing is running.")
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
	case ofRoom(o):
		return "kept until make classroom-down"
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
	path, err := a.kubectlPath(ctx)
	if err != nil {
		return err
	}
	a.Progress("kubectl talks to " + c.Name + " here; exit ends the shell, not the cluster")
	return a.runShell("KUBECONFIG="+c.Kubeconfig, "LAB_CLUSTER="+c.Name, "MEMCACHED_IMAGE="+memcached.Image, "PATH="+path)
}

// kubectlPath is a PATH with kubectl, which is downloaded or compiled if the machine has none.
func (a *app) kubectlPath(ctx context.Context) (string, error) {
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	a.Progress("this machine has no kubectl; getting it, which takes some minutes where it has to be compiled")
	builder := components.Builder{CacheDir: a.Cache, OS: runtime.GOOS, Download: true, Log: a.Progress}
	built, err := builder.Build(ctx, "kubectl")
	return path + string(filepath.ListSeparator) + filepath.Dir(built["kubectl"]), err
}

// runShell runs the shell without the command's context, because Ctrl-C is for what runs in the shell. The exit code of the last
// command that was typed is no error.
func (a *app) runShell(env ...string) error {
	cmd := exec.Command(cmp.Or(os.Getenv("SHELL"), "/bin/sh"))
	cmd.Dir, cmd.Env = a.Root, append(os.Environ(), env...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return fmt.Errorf("run shell: %w", err)
	}
	return nil
}
