package main

import (
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
		RunE: func(cmd *cobra.Command, _ []string) error { return a.shell(cmd.Context(), a.kubectl) },
	}
}

// shell opens a shell. kubectl returns the folder of a kubectl for machines that have none.
func (a *app) shell(ctx context.Context, kubectl func(context.Context) (string, error)) error {
	owner, err := a.playground(ctx)
	if err != nil {
		return err
	}
	if owner == nil {
		return &clusters.Problem{What: "there is no cluster to talk to", Fix: "make up"}
	}
	if err := a.healthy(ctx, owner); err != nil {
		return err
	}
	c := owner.Cluster
	env := append(os.Environ(), "KUBECONFIG="+c.Kubeconfig, "LAB_CLUSTER="+c.Name, "MEMCACHED_IMAGE="+memcached.Image)
	if _, err := exec.LookPath("kubectl"); err != nil {
		dir, err := kubectl(ctx)
		if err != nil {
			return err
		}
		env = append(env, "PATH="+os.Getenv("PATH")+string(filepath.ListSeparator)+dir)
	}
	a.Progress("kubectl talks to " + c.Name + " here; exit ends the shell, not the cluster")
	return a.runShell(env)
}

// runShell runs the shell without the command's context: Ctrl-C is meant for what runs in the shell.
func (a *app) runShell(env []string) error {
	shell := loginShell()
	cmd := exec.Command(shell)
	cmd.Dir, cmd.Env = a.Root, env
	cmd.Stdin, cmd.Stdout, cmd.Stderr = a.In, a.Out, a.Err
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); ended {
		// The code of the last command that was typed is nobody's failure.
		return nil
	}
	if err != nil {
		return fmt.Errorf("run shell: %w", err)
	}
	return nil
}

func loginShell() string {
	if shell := os.Getenv("SHELL"); shell != "" {
		return shell
	}
	return "/bin/sh"
}

// kubectl gets kubectl and returns its folder.
func (a *app) kubectl(ctx context.Context) (string, error) {
	a.Progress("this machine has no kubectl; getting it, which takes some minutes where it has to be compiled")
	builder := components.Builder{CacheDir: a.Cache, OS: runtime.GOOS, Download: true, Log: a.Progress}
	built, err := builder.Build(ctx, "kubectl")
	if err != nil {
		return "", err
	}
	return filepath.Dir(built["kubectl"]), nil
}
