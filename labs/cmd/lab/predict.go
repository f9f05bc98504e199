package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

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
	quiz, err := demo.ReadQuiz(filepath.Join(a.Root, lessonZero, "quiz.yaml"))
	if err != nil {
		return err
	}
	answers, err := a.predictions(quiz)
	if err != nil {
		return err
	}
	owned, image, err := a.Ready(ctx, 1)
	if err != nil {
		return err
	}
	path, err := a.kubectlPath(ctx)
	if err != nil {
		return err
	}
	a.Progress("starting a cluster, which takes some seconds")
	spec := a.Spec(owned, image)
	spec.Label, spec.Keep = "lab-0", keep
	cluster, err := owned.Create(ctx, spec)
	if err != nil {
		return err
	}
	if !keep {
		defer func() { err = errors.Join(err, deleteCluster(ctx, owned, cluster)) }()
	}
	stage, err := a.stage(cluster, path)
	if err != nil {
		return err
	}
	right, judged, err := quiz.Run(ctx, stage, answers)
	if err != nil {
		return err
	}
	fmt.Fprintln(a.Out)
	if keep {
		a.stays(cluster)
	}
	if right < judged {
		fmt.Fprintf(a.Out, "lab 0: %d of %d answers are what was seen. Change the others in %s, and run `make lab-0%s` again.\n",
			right, judged, a.answersPath(), a.workspaceArg())
		return exit.ErrFail
	}
	fmt.Fprintf(a.Out, "lab 0: pass: %d answers of %d are what was seen.\n\nNext: %s/README.md, then `make lab-1`\n", right, judged, c.Labs[0].Dir)
	return nil
}

func (a *app) answersPath() string { return filepath.Join(a.workspace, answersFile) }

// writeQuestions makes a file that is not there: what somebody else may have put there meanwhile is left alone.
func (a *app) writeQuestions(path string) error {
	questions, err := os.ReadFile(filepath.Join(a.Root, lessonZero, answersFile))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	_, err = file.Write(questions)
	return errors.Join(err, file.Close())
}

// predictions are the answers in the workspace, where the questions are put if they are not there yet. Open questions end the command.
func (a *app) predictions(quiz demo.Quiz) (demo.Answers, error) {
	path := a.answersPath()
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(a.workspace, "go.mod")); err != nil {
			return nil, exit.Usage("%s has no go.mod, so it is no workspace. If lab made it, `make undo%s` brings back what was saved last; if not, name a new folder: WORKSPACE=DIR", a.workspace, a.workspaceArg())
		}
		if err := a.writeQuestions(path); err != nil {
			return nil, fmt.Errorf("write the questions of lab 0: %w", err)
		}
		fmt.Fprintf(a.Out, "lab 0: eight questions are in %s now. Write what you expect after each colon, and run `make lab-0%s` again.\n", path, a.workspaceArg())
		return nil, exit.ErrFail
	}
	answers, open, err := quiz.ReadAnswers(path)
	if err != nil {
		return nil, err
	}
	if len(open) > 0 {
		fmt.Fprintf(a.Out, "lab 0: %s has no answer yet for %s. Write what you expect, and run `make lab-0%s` again. (Without the file it is made anew.)\n",
			path, strings.Join(open, ", "), a.workspaceArg())
		return nil, exit.ErrFail
	}
	return answers, nil
}
