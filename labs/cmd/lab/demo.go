package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/demo"
	"github.com/example/operator-lab/labs/internal/memcached"
)

func newDemoCommand(a *app) *cobra.Command {
	var keep bool
	cmd := cli.Command("demo", `Watch the finished operator at work, in two minutes

On a fresh cluster: create a Memcached, delete its Deployment and see it come back, scale, be refused size 6, let an autoscaler decide,
delete it all. Each step runs the command that it shows, and tells who did what about it. Your workspace plays no part in it. Afterwards
nothing is left, unless --keep is given.`, cobra.NoArgs, func(ctx context.Context, _ []string) error {
		a.Progress("compiling the operator")
		bin := filepath.Join(a.State, "bin")
		if err := demo.Build(ctx, a.Root, bin); err != nil {
			return err
		}
		return a.onStage(ctx, "demo", keep, func(s demo.Stage) error { return s.Show(ctx, a.Root, bin) })
	})
	cmd.Flags().BoolVar(&keep, "keep", false, "leave the cluster running for a look at it; make down removes it")
	return cmd
}

// onStage shows something on a fresh cluster, which is deleted afterwards unless it is to be kept.
func (a *app) onStage(ctx context.Context, label string, keep bool, show func(demo.Stage) error) (err error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	path, err := a.kubectlPath(ctx)
	if err != nil {
		return err
	}
	a.Progress("starting a cluster, which takes up to half a minute")
	spec := a.Spec(owned, image)
	spec.Label, spec.Keep = label, keep
	cluster, err := owned.Create(ctx, spec)
	if err != nil {
		return err
	}
	defer func() {
		if keep {
			a.stays(cluster)
		} else {
			err = errors.Join(err, cli.Delete(ctx, owned, cluster))
		}
	}()
	dir := filepath.Join(a.State, "artifacts", cluster.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep what the commands write: %w", err)
	}
	return show(demo.Stage{Cluster: cluster, Operand: memcached.Image, Dir: dir, Path: path, Out: a.Out})
}

// lessonZero is the folder of lab 0, the lab without code. Its answers are predictions in a file of the workspace.
const lessonZero = "labs/00-who-did-that"

// predict is `lab check 0`.
func (a *app) predict(ctx context.Context, keep bool) error {
	c, err := a.Course()
	if err != nil {
		return err
	}
	unlock, err := a.lockPossible(c)
	if err != nil {
		return err
	}
	defer unlock()
	// Before the machine is set up for clusters: to read and answer the questions takes none.
	if err := a.ensure(ctx, c); err != nil {
		return err
	}
	quiz, err := demo.ReadQuiz(filepath.Join(a.Root, lessonZero, "quiz.yaml"))
	if err != nil {
		return err
	}
	answers, err := a.predictions(quiz)
	if err != nil {
		return err
	}
	return a.onStage(ctx, "lab-0", keep, func(s demo.Stage) error {
		right, judged, err := quiz.Run(ctx, s, answers)
		if err != nil {
			return err
		}
		fmt.Fprintf(a.Out, "\nlab 0: %d of %d answers are what was seen.\n", right, judged)
		if right < judged {
			fmt.Fprintf(a.Out, "Change the others in %s, and run `make lab-0%s` again.\n", a.answersPath(), a.workspaceArg())
			return exit.ErrFail
		}
		fmt.Fprintf(a.Out, "Next: %s/README.md, then `make lab-1`\n", c.Labs[0].Dir)
		return nil
	})
}

func (a *app) answersPath() string { return filepath.Join(a.workspace, "answers.yaml") }

// predictions are the answers in the workspace, where the questions are put if they are not there yet. Open questions end the command.
func (a *app) predictions(quiz demo.Quiz) (demo.Answers, error) {
	path := a.answersPath()
	if _, err := os.Stat(filepath.Join(a.workspace, "go.mod")); err != nil {
		return nil, exit.Usage("%s has no go.mod, so it is no workspace: name a new folder, WORKSPACE=DIR, or make undo%s", a.workspace, a.workspaceArg())
	}
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		questions, err := os.ReadFile(filepath.Join(a.Root, lessonZero, "answers.yaml"))
		if err == nil {
			err = os.WriteFile(path, questions, 0o644)
		}
		if err != nil {
			return nil, fmt.Errorf("write the questions of lab 0: %w", err)
		}
	}
	answers, open, err := quiz.ReadAnswers(path)
	if err != nil {
		return nil, exit.Usage("%w", err)
	}
	if len(open) > 0 {
		fmt.Fprintf(a.Out, "lab 0: the questions are in %s. Answer %s, and run `make lab-0%s` again.\n", path, strings.Join(open, ", "), a.workspaceArg())
		return nil, exit.ErrFail
	}
	return answers, nil
}
