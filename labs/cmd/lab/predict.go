package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/demo"
)

// labZero is the lab without code: its answers are predictions in a file of the workspace.
const (
	labZero     = "0"
	answersFile = "answers.yaml"
	lessonZero  = "labs/00-who-did-that"
)

// predict is `lab check 0`.
func (a *app) predict(ctx context.Context, keep bool) (err error) {
	c, err := a.Course()
	if err != nil {
		return err
	}
	unlock, err := a.lockPossible(c)
	if err != nil {
		return err
	}
	defer unlock()
	// Before a container engine is asked for: to read and answer the questions takes none.
	if err := a.ensure(ctx, c); err != nil {
		return err
	}
	answers, err := a.predictions()
	if err != nil {
		return err
	}
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	a.Progress("creating a cluster, which takes about 20 s")
	cluster, err := owned.Create(ctx, "lab-0", a.Spec(owned, image), keep)
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, remove(ctx, owned, cluster)) }()
	}
	right, judged, err := demo.Quiz{Cluster: cluster, Operand: nodeimage.Operand, Answers: answers, Out: a.Out}.Run(ctx)
	if err != nil {
		return err
	}
	if right < judged {
		fmt.Fprintf(a.Out, "\nlab 0: fail: %d of %d answers are right. Change %s, and run `make lab-0` again.\n", right, judged, a.answersPath())
		return exit.ErrFail
	}
	fmt.Fprintf(a.Out, "\nlab 0: pass: all %d answers are right.\n\nNext: %s/README.md, then `make lab-1`\n", judged, c.Labs[0].Dir)
	return nil
}

func (a *app) answersPath() string { return filepath.Join(a.workspace, answersFile) }

// predictions are the answers in the workspace, where the questions are put if they are not there yet. Open questions end the command.
func (a *app) predictions() (demo.Answers, error) {
	path := a.answersPath()
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		questions, err := os.ReadFile(filepath.Join(a.Root, lessonZero, answersFile))
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, questions, 0o644); err != nil {
			return nil, fmt.Errorf("write the questions of lab 0: %w", err)
		}
	}
	answers, open, err := demo.ReadAnswers(path)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 {
		fmt.Fprintf(a.Out, "lab 0: %s has no answer yet for %s. Read %s/README.md, write what you expect, and run `make lab-0` again.\n",
			path, strings.Join(open, ", "), lessonZero)
		return nil, exit.ErrFail
	}
	return answers, nil
}
