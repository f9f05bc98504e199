// Command lab checks the steps of the Operator Lab. `lab --help` lists what it does; nearly every make target of the
// checkout calls it.
package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"

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
		Short: "Build a Kubernetes operator in steps, each judged on a fresh cluster",
		Long: `lab judges each step of the Memcached operator that you build in workspace/, on a fresh cluster: kind, or, without a
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
	with := func(run func(context.Context) error) runner {
		return func(ctx context.Context, _ []string) error { return run(ctx) }
	}
	root.AddCommand(
		newDemoCommand(a), newCheckCommand(a), newWatchCommand(a), newTraceCommand(a), newDiffCommand(a), newUndoCommand(a), newDownCommand(a),
		newRegistryCommand(a),
		command("hint N", "The next hint for what failed last in step N (make hint-N)", cobra.ExactArgs(1),
			func(_ context.Context, args []string) error { return a.hint(args[0]) }),
		command("progress", "Which steps pass, when, how long they took (make progress)", cobra.NoArgs, with(a.progress)),
		command("solve N", "Save your work, then bring the workspace to the solution of lab N", cobra.ExactArgs(1),
			func(ctx context.Context, args []string) error { return a.bring(ctx, "solve", args[0]) }),
		command("reset N", "Save your work, then bring the workspace to the starter of lab N", cobra.ExactArgs(1),
			func(ctx context.Context, args []string) error { return a.bring(ctx, "reset", args[0]) }),
		command("join ROOM KEY NAME", "Join a classroom: your verdicts go to its board (make join ROOM=address KEY=key NAME=you)",
			cobra.ExactArgs(3),
			func(ctx context.Context, args []string) error {
				return a.join(ctx, args[0], args[1], strings.TrimSpace(args[2]))
			}),
		command("up", `Start a cluster to play with, with your CRD if there is one

It stays until lab down, and no lab is judged on it. The custom resource definitions in config/crd/bases of the workspace are installed.
Running it again installs them anew in the cluster that is there.`, cobra.NoArgs, with(a.up)),
		command("shell", `Open a shell that talks to the cluster of lab up

It is $SHELL in the checkout, with KUBECONFIG set to the cluster, MEMCACHED_IMAGE to the image that its nodes have, and with kubectl, which
is built from source when this machine has none. The cluster goes on running when the shell ends.`, cobra.NoArgs, with(a.shell)),
		command("status", "List the clusters and processes of this checkout", cobra.NoArgs, with(a.status)),
		command("doctor", `Say what on this machine would stop a lab, and the command that fixes it

It looks at the container engine, the node image, inotify, disks, memory and Go, and changes nothing. The exit code is 3 when a lab could
not run.`, cobra.NoArgs, with(a.doctor)),
		command("setup", "Set up what this machine lacks: container engine, kernel settings, node image", cobra.NoArgs, with(a.setUp)),
	)
	return root
}

// runner does what a command is for.
type runner func(ctx context.Context, args []string) error

// command is a command of lab. The first line of text is its summary.
func command(use, text string, args cobra.PositionalArgs, run runner) *cobra.Command {
	short, _, _ := strings.Cut(text, "\n")
	return &cobra.Command{
		Use: use, Short: short, Long: text, Args: args,
		RunE: func(cmd *cobra.Command, args []string) error { return run(cmd.Context(), args) },
	}
}

// lab is the course, and the number of one of its labs.
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

// workspaceName is the workspace as a person calls it: without the way to the checkout.
func (a *app) workspaceName() string {
	if rel, err := filepath.Rel(a.Root, a.workspace); err == nil && filepath.IsLocal(rel) {
		return rel + string(filepath.Separator)
	}
	return a.workspace
}

// workspaceArg is what a make target needs to mean the same workspace again.
func (a *app) workspaceArg() string {
	if a.workspace == filepath.Join(a.Root, "workspace") {
		return ""
	}
	return " WORKSPACE=" + a.workspace
}
