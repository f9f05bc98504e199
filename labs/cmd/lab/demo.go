package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/demo"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// demo is `lab demo`.
func (a *app) demo(ctx context.Context, _ []string) error {
	a.Progress("compiling the operator")
	bin := filepath.Join(a.State, "bin")
	if err := demo.Build(ctx, a.Root, bin); err != nil {
		return err
	}
	return a.onStage(ctx, "demo", func(s demo.Stage) error { return s.Show(ctx, a.Root, bin) })
}

// onStage shows something on a fresh cluster, which is deleted afterwards.
func (a *app) onStage(ctx context.Context, label string, show func(demo.Stage) error) (err error) {
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	path, err := a.KubectlPath(ctx)
	if err != nil {
		return err
	}
	a.Progress("starting a cluster, which takes up to half a minute")
	spec := a.Spec(owned, image)
	spec.Label = label
	cluster, err := owned.Create(ctx, spec)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cli.Delete(ctx, owned, cluster)) }()
	dir := filepath.Join(a.State, "artifacts", cluster.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("keep what the commands write: %w", err)
	}
	a.Settle()
	return show(demo.Stage{Cluster: cluster, Operand: memcached.Image, Dir: dir, Path: path, Out: a.Out})
}

// predict is `lab check 0`. The answers are in a file of the workspace.
func (a *app) predict(ctx context.Context, _ []string) error {
	if a.format != verdict.Text {
		return exit.Usage("lab 0 has no FORMAT=%s: it is judged without code", a.format)
	}
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
	quiz, err := demo.ReadQuiz(filepath.Join(a.Root, course.LabZero, "quiz.yaml"))
	if err != nil {
		return err
	}
	answers, err := a.predictions(quiz)
	if err != nil {
		return err
	}
	if answers == nil {
		return nil
	}
	begun := time.Now()
	return a.onStage(ctx, "lab-0", func(s demo.Stage) error {
		right, judged, err := quiz.Run(ctx, s, answers)
		if err != nil {
			return err
		}
		a.Say("\nlab 0: %d of %d answers are what was seen.", right, judged)
		v := verdict.Pass
		if right < judged {
			v = verdict.Fail
			a.Say("Change the others in %s, and run `make lab-0%s` again.", plain.Path(a.answersPath()), a.workspaceArg())
		} else {
			a.Say("Next: %s/README.md, then `make lab-1`", c.Labs[0].Dir)
		}
		event := verdict.Event{Time: begun, Verdict: v, Seconds: time.Since(begun).Seconds(), Workspace: a.workspace}
		return errors.Join(verdict.Record(a.State, event), cli.Told(v))
	})
}

func (a *app) answersPath() string { return filepath.Join(a.workspace, "answers.yaml") }

// predictions are the answers in the workspace. The first time it puts the questions there, and returns nil. Open questions end the
// command.
func (a *app) predictions(quiz demo.Quiz) (demo.Answers, error) {
	path := a.answersPath()
	if _, err := os.Stat(filepath.Join(a.workspace, "go.mod")); err != nil {
		return nil, exit.Usage("%s has no go.mod, so it is no workspace: name a new folder, WORKSPACE=DIR, or make undo%s", plain.Path(a.workspace), a.workspaceArg())
	}
	_, err := os.Lstat(path)
	first := errors.Is(err, os.ErrNotExist)
	if first {
		questions, err := os.ReadFile(filepath.Join(a.Root, course.LabZero, "answers.yaml"))
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
		a.Say("lab 0: the questions are in %s. Answer %s, and run `make lab-0%s` again.", plain.Path(path), strings.Join(open, ", "), a.workspaceArg())
		if first {
			return nil, nil
		}
		return nil, exit.ErrFail
	}
	return answers, nil
}
