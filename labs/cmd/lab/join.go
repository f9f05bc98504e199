package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/board/inbox"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/workspace"
)

func newJoinCommand(a *app) *cobra.Command {
	var stay bool
	cmd := &cobra.Command{
		Use:   "join [N]",
		Short: "Save your work, then go on where the room is (make join)",
		Long: `join asks the room's board which lab the instructor goes on with, and brings the workspace to the start of it, as
lab reset does: your work is saved first, and lab undo brings it back. A workspace that does not exist yet is made there.
At a terminal it asks before it changes anything; --yes says yes beforehand.

Without a board, or to another lab: lab join N. --stay changes nothing and lets the instructor know that you go on where
you are.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 || stay && len(args) > 0 {
				return exit.Usage("too many arguments: use lab join, lab join N, such as join 5, or lab join --stay")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if stay {
				return a.stay(cmd.Context())
			}
			return a.join(cmd.Context(), args)
		},
	}
	cmd.Flags().BoolVar(&stay, "stay", false, "tell the instructor that you go on where you are")
	return cmd
}

func (a *app) join(ctx context.Context, args []string) error {
	c, err := a.course()
	if err != nil {
		return err
	}
	if len(args) == 1 {
		n, err := labNumber(c, args[0])
		if err != nil {
			return err
		}
		_, err = a.goTo(ctx, c, n)
		if err == nil {
			a.tellJoined(ctx, n)
		}
		return err
	}
	box, step, err := a.roomStep(ctx, c)
	if err != nil {
		return err
	}
	if err := a.agreeToJoin(c, step.Lab); err != nil {
		return err
	}
	_, err = a.follow(ctx, c, box, step)
	return err
}

// agreeToJoin asks whoever has something there already.
func (a *app) agreeToJoin(c *course.Course, n int) error {
	if _, err := os.Stat(a.workspace); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	what := fmt.Sprintf("The room goes on with %s. This brings %s to its start; your work is saved first.", labName(c, n), a.workspaceName())
	return a.agree(a.atTerminal(), what, "nothing was changed")
}

// roomStep asks the board which lab the room goes on with. That there is none is wrong usage.
func (a *app) roomStep(ctx context.Context, c *course.Course) (*inbox.Inbox, inbox.Message, error) {
	box, err := a.inbox()
	if err != nil {
		return nil, inbox.Message{}, err
	}
	if box == nil {
		return nil, inbox.Message{}, exit.Usage("no board is configured here: say which lab, as in make join N=5")
	}
	step, err := lastStep(ctx, box)
	switch {
	case errors.Is(err, errNoStep):
		return nil, step, exit.Usage("the instructor has not asked the room to go on with a lab yet; make join N=5 goes to one all the same")
	case err != nil:
		return nil, step, exit.Environment(fmt.Errorf("%w; ask which lab it is, and say it: make join N=5", err))
	case step.Lab > len(c.Labs):
		return nil, step, exit.Usage("the room is at lab %d, and this checkout has labs 1 to %d: get the instructor's", step.Lab, len(c.Labs))
	}
	return box, step, nil
}

// errNoStep says that the room is nowhere in particular.
var errNoStep = errors.New("the room is at no lab")

// lastStep is the one that the board has for everybody.
func lastStep(ctx context.Context, box *inbox.Inbox) (inbox.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	messages, err := box.Ask(ctx)
	if err != nil {
		return inbox.Message{}, err
	}
	for _, m := range messages {
		if m.Kind == inbox.Step {
			return m, nil
		}
	}
	return inbox.Message{}, errNoStep
}

// goTo brings the workspace to the start of a lab, and says how to get back.
func (a *app) goTo(ctx context.Context, c *course.Course, n int) (workspace.Change, error) {
	unlock, err := a.lock()
	if err != nil {
		return workspace.Change{}, err
	}
	defer unlock()
	change, err := workspace.Reset(ctx, c, a.workspace, n)
	if err != nil {
		return change, err
	}
	a.tellChange(change, fmt.Sprintf("the starter of lab %d", n))
	lab, err := c.Lab(n)
	if err != nil {
		return change, err
	}
	fmt.Fprintf(a.out, "Next: %s/README.md, then `make lab-%d%s`\n", lab.Dir, n, a.workspaceArg())
	return change, nil
}

// follow goes where the room is, and tells the board.
func (a *app) follow(ctx context.Context, c *course.Course, box *inbox.Inbox, step inbox.Message) (workspace.Change, error) {
	change, err := a.goTo(ctx, c, step.Lab)
	if err == nil {
		box.Fresh([]inbox.Message{step}) // it need not be shown any more
		a.answerBoard(ctx, box, step, inbox.Joined)
	}
	return change, err
}

// answerBoard tells the board. The instructor sees from the next verdict, too, where somebody is.
func (a *app) answerBoard(ctx context.Context, box *inbox.Inbox, step inbox.Message, answer string) {
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := box.Answer(ctx, step, answer); err != nil {
		a.progress("the instructor does not know of it yet: " + err.Error())
	}
}

// tellJoined tells the board when the lab that was joined is the room's. Without a board, nobody waits.
func (a *app) tellJoined(ctx context.Context, n int) {
	box, err := a.inbox()
	if err != nil || box == nil {
		return
	}
	if step, err := lastStep(ctx, box); err == nil && step.Lab == n {
		box.Fresh([]inbox.Message{step})
		a.answerBoard(ctx, box, step, inbox.Joined)
	}
}

// stay tells the board that the learner goes on where they are.
func (a *app) stay(ctx context.Context) error {
	c, err := a.course()
	if err != nil {
		return err
	}
	box, step, err := a.roomStep(ctx, c)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := box.Answer(ctx, step, inbox.Stays); err != nil {
		return exit.Environment(err)
	}
	box.Fresh([]inbox.Message{step})
	fmt.Fprintf(a.out, "The instructor knows that you go on where you are. `make join%s` brings you to lab %d at any time.\n", a.workspaceArg(), step.Lab)
	return nil
}
