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

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/labs/internal/memcached"
)

// newShellCommand is `lab shell`.
func newShellCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "shell",
		Short: "Open a shell that talks to the cluster of lab up",
		Long: `Open $SHELL in the checkout, with KUBECONFIG set to the cluster of lab up, MEMCACHED_IMAGE to the image that its
nodes have, and with kubectl, which is built from source when this machine has none. The cluster goes on running
when the shell ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.shell(cmd.Context()) },
	}
}

func (a *app) shell(ctx context.Context) error {
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

// kubectlPath is a PATH with kubectl, which is downloaded or compiled for a machine that has none.
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

// runShell runs the shell without the command's context: Ctrl-C is meant for what runs in the shell. The code of the last command that
// was typed is no failure.
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
