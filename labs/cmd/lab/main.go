// Command lab judges what a learner writes. `lab --help` lists what it does; the make targets for learners call it.
package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func main() {
	os.Exit(cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{App: *shared}) }))
}

// app is what the commands of a learner share.
type app struct {
	cli.App
	workspace string // --workspace, absolute
	format    string // --format of check
}

func newRootCommand(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:   "lab",
		Short: "Build a Kubernetes operator in labs, each judged on a fresh cluster",
		Long: `lab judges the Memcached operator that you build in workspace/, lab by lab, on a fresh cluster: kind, or, without a
container engine, an embedded control plane.

Without a number, check, hint, trace and diff are about the lab of the last verdict.

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
		newCheckCommand(a), newTraceCommand(a), newDownCommand(a), newRegistryCommand(a), newCKACommand(a),
		cli.Command("solution cka-N", "Two ways to do a task of the CKA practice, after it passed; before, with --yes", cobra.ExactArgs(1),
			func(ctx context.Context, args []string) error { return a.solution(ctx, args[0]) }),
		cli.Command("demo", `Watch the finished operator at work, in two minutes

On a fresh cluster: create a Memcached, delete its Deployment and see it come back, scale, be refused size 6, let an autoscaler decide,
delete it all. Each step runs the command that it shows, and tells who did what about it. Your workspace plays no part in it.`,
			cobra.NoArgs, a.demo),
		cli.Command("watch [N]", `Judge lab N again on every save (make watch, make watch-N)

A save counts if it changes what the verdict depends on: a Go file, go.mod, a manifest. It ends the check that is under way. Each check
has a fresh cluster of its own. Without N, it is about the first lab that you have not passed. Ctrl-C ends it.`,
			cobra.MaximumNArgs(1), a.watch),
		cli.Command("hint [N|cka-N]", "The next hint for what failed last in a lab, or in a task of the CKA practice (make hint, make hint-N)", cobra.MaximumNArgs(1),
			choose(a.hint, nil, a.hintTask)),
		cli.Command("diff [N]", `What our solution does differently (make diff, make diff-N)

It compares what lab N adds, function by function and without comments. As it shows the solution, it waits until lab N has passed.`,
			cobra.MaximumNArgs(1), func(_ context.Context, args []string) error { return a.diff(args...) }),
		cli.Command("lesson [N]", `The lesson of lab N, to read in a terminal (make lesson, make lesson-N)

Without N it is about the lab of the last verdict. It is the README's Markdown, folded at 80 columns: a browser shows the pictures.`,
			cobra.MaximumNArgs(1), choose(a.lesson, a.lessonZero, nil)),
		cli.Command("progress", "Which labs passed, and when (make progress)", cobra.NoArgs, a.progress),
		cli.Command("solve N", "Save your work, then bring the workspace to the solution of lab N", cobra.ExactArgs(1),
			func(ctx context.Context, args []string) error { return a.bring(ctx, "solve", args[0]) }),
		cli.Command("reset N|cka-N", "Save your work, then bring the workspace to the starter of lab N; or begin a task of the CKA practice anew",
			cobra.ExactArgs(1), choose(func(ctx context.Context, args []string) error { return a.bring(ctx, "reset", args[0]) }, nil,
				func(ctx context.Context, args []string) error { return a.practise(ctx, args[0], 0, true) })),
		cli.Command("undo [SAVE]", "Bring back what solve, reset or undo replaced, or a save by number",
			cobra.MaximumNArgs(1), func(ctx context.Context, args []string) error { return a.undo(ctx, append(args, "")[0]) }),
		cli.Command("join ROOM KEY NAME", "Join a classroom: your verdicts go to its board (make join)",
			cobra.ExactArgs(3), a.join),
		cli.Command("up", "Start a cluster to play with, which stays until lab down", cobra.NoArgs, a.up),
		cli.Command("shell", `Open a shell that talks to the cluster of lab up

It is $SHELL in the checkout, with KUBECONFIG set to the cluster, MEMCACHED_IMAGE to the image that its nodes have, and with kubectl, which
is built from source when this machine has none. The cluster goes on running when the shell ends.`, cobra.NoArgs, a.shell),
		cli.Command("envtest", "Give the unit tests of the workspace a kube-apiserver and an etcd, in its bin/k8s (make envtest)", cobra.NoArgs, a.envtest),
		cli.Command("image", "Build an image of your operator, and bring it onto the nodes of the cluster of lab up (make image)", cobra.NoArgs, a.image),
		cli.Command("status", "List the clusters of this checkout", cobra.NoArgs, a.status),
		cli.Command("doctor", "Say what on this machine would stop a lab, and what fixes it", cobra.NoArgs, a.doctor),
		cli.Command("setup", "Set up what this machine lacks: engine, settings, node image", cobra.NoArgs, a.setUp),
	)
	return root
}

type command = func(ctx context.Context, args []string) error

// choose is a command about what its argument names: lab N, lab 0, or task cka-N. Without zero or task, lab refuses those.
func choose(lab, zero, task command) command {
	return func(ctx context.Context, args []string) error {
		switch name := append(args, "")[0]; {
		case zero != nil && name == "0":
			return zero(ctx, args)
		case task != nil && strings.HasPrefix(name, taskPrefix):
			return task(ctx, args)
		}
		return lab(ctx, args)
	}
}

// lab loads the course, and reads the number of one of its labs. Without a number it is the lab of the last verdict.
func (a *app) lab(number ...string) (*course.Course, int, error) {
	c, err := a.Course()
	if err != nil {
		return nil, 0, err
	}
	if len(number) > 0 {
		n, err := cli.LabNumber(c, number[0])
		return c, n, err
	}
	events, err := verdict.History(a.State, a.workspace)
	for _, e := range slices.Backward(events) {
		if e.Lab > 0 && e.Lab <= len(c.Labs) {
			return c, e.Lab, err
		}
	}
	return nil, 0, cmp.Or(err, exit.Usage("no lab was checked yet: run make lab-1%s first", a.workspaceArg()))
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
		a.Notice("made " + plain.Path(a.workspace) + ", where you write your operator")
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
