// Command lab judges what a learner writes. `lab --help` lists what it does; the make targets for learners call it.
package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func main() {
	os.Exit(cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{App: *shared}) }))
}

// app is what the commands of a learner share.
type app struct {
	cli.App
	workspace string // --workspace, absolute
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "Build a Kubernetes operator in labs, each judged on a fresh cluster",
		Long: `lab judges the Memcached operator that you build in workspace/, lab by lab, on a fresh cluster: kind, or, without a
container engine, an embedded control plane.

Exit codes: 0 pass or done, 1 fail, 2 wrong usage, 3 the machine is at fault, 130 interrupted.`,
		RunE: func(*cobra.Command, []string) error { return exit.Usage("no command given; see lab --help") },
	}
	a.Flags(root, cli.Hosted)
	resolve := root.PersistentPreRunE
	root.PersistentPreRunE = func(cmd *cobra.Command, args []string) error {
		if err := resolve(cmd, args); err != nil {
			return err
		}
		a.useRoomsModules(cmd.Context())
		if a.workspace == "" {
			return exit.Usage("WORKSPACE is empty: name a folder, or leave it out")
		}
		a.workspace = workspace.Real(a.workspace)
		return nil
	}
	root.PersistentFlags().StringVar(&a.workspace, "workspace", filepath.Join(a.Root, "workspace"), "folder that you work in")
	root.AddCommand(
		newDemoCommand(a), newCheckCommand(a), newTraceCommand(a), newDiffCommand(a), newUndoCommand(a), newDownCommand(a), newRegistryCommand(a),
		cli.Command("watch [N]", `Judge lab N again on every save (make watch, make watch-N)

A save counts if it changes what the verdict depends on: a Go file, go.mod, a manifest. It ends the check that is under way. Each check
has a fresh cluster of its own. Without N, it begins with the first lab that you have not passed.
In a terminal, type h for the next hint, n for the next lab, q to quit, or nothing to check again, and Enter.`,
			cobra.MaximumNArgs(1), a.watch),
		cli.Command("hint N", "The next hint for what failed last in lab N (make hint-N)", cobra.ExactArgs(1),
			func(_ context.Context, args []string) error { return a.hint(args[0]) }),
		cli.Command("progress", "Which labs passed, and when (make progress)", cobra.NoArgs, a.progress),
		cli.Command("solve N", "Save your work, then bring the workspace to the solution of lab N", cobra.ExactArgs(1),
			func(ctx context.Context, args []string) error { return a.bring(ctx, "solve", args[0]) }),
		cli.Command("reset N", "Save your work, then bring the workspace to the starter of lab N", cobra.ExactArgs(1),
			func(ctx context.Context, args []string) error { return a.bring(ctx, "reset", args[0]) }),
		cli.Command("join ROOM KEY NAME", "Join a classroom: your verdicts go to its board (make join ROOM=address KEY=key NAME=you)",
			cobra.ExactArgs(3), a.join),
		cli.Command("up", "Start a cluster to play with, which stays until lab down; no lab is judged on it", cobra.NoArgs, a.up),
		cli.Command("shell", `Open a shell that talks to the cluster of lab up

It is $SHELL in the checkout, with KUBECONFIG set to the cluster, MEMCACHED_IMAGE to the image that its nodes have, and with kubectl, which
is built from source when this machine has none. The cluster goes on running when the shell ends.`, cobra.NoArgs, a.shell),
		cli.Command("status", "List the clusters of this checkout", cobra.NoArgs, a.status),
		cli.Command("doctor", "Say what on this machine would stop a lab, and the command that fixes it; it changes nothing", cobra.NoArgs, a.doctor),
		cli.Command("setup", "Set up what this machine lacks: container engine, kernel settings, node image", cobra.NoArgs, a.setUp),
	)
	return root
}

// lab loads the course, and reads the number of one of its labs.
func (a *app) lab(text string) (*course.Course, int, error) {
	c, err := a.Course()
	if err != nil {
		return nil, 0, err
	}
	n, err := cli.LabNumber(c, text)
	return c, n, err
}

// lock keeps two commands from working on one workspace at the same time.
func (a *app) lock() (unlock func(), err error) {
	return a.Lock(workspace.Key(a.workspace), a.workspace)
}

// lockPossible locks a workspace that is there, or can be made.
func (a *app) lockPossible(c *course.Course) (unlock func(), err error) {
	if err := workspace.Possible(c, a.workspace); err != nil {
		return nil, err
	}
	return a.lock()
}

// ensure makes a workspace that does not exist yet, and says so.
func (a *app) ensure(ctx context.Context, c *course.Course) error {
	created, err := workspace.Ensure(ctx, c, a.workspace)
	if created {
		a.Progress("made your workspace " + a.workspace + ": this is where you write your operator")
	}
	return err
}

// workspaceArg is the setting with which a make target works on the same workspace, "" for the default one.
func (a *app) workspaceArg() string {
	if a.workspace == filepath.Join(a.Root, "workspace") {
		return ""
	}
	return " WORKSPACE=" + a.workspace
}
