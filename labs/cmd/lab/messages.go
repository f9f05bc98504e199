package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/board/inbox"
	"github.com/example/operator-lab/labs/internal/board/outbox"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/exit"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// askLimit is how long a command that is about the board waits for it.
const askLimit = 5 * time.Second

func newMessagesCommand(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "messages",
		Short: "What the instructor said today (make messages)",
		Long: `messages asks the room's board what the instructor has said to you and to everybody today. What is new you also see
after a check, and while lab watch waits for a save.`,
		Args: noArguments("messages"),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.messages(cmd.Context()) },
	}
}

func (a *app) messages(ctx context.Context) error {
	c, err := a.course()
	if err != nil {
		return err
	}
	box, err := a.inbox()
	if err != nil {
		return err
	}
	if box == nil {
		return exit.Usage("no board is configured here: source the env.sh of your handout, or copy its .lab/board.json to %s", a.state)
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	messages, err := box.Ask(ctx)
	if err != nil {
		return exit.Environment(err)
	}
	box.Fresh(messages) // they are shown now
	for _, m := range messages {
		a.tellMessage(a.out, c, m)
	}
	if len(messages) == 0 {
		fmt.Fprintln(a.out, "The instructor has said nothing today.")
	}
	box.Acknowledge(ctx, messages)
	return nil
}

// inbox is that of the configured board, nil where there is none.
func (a *app) inbox() (*inbox.Inbox, error) {
	config, err := outbox.Configured(a.state)
	if err != nil {
		return nil, exit.Usage("%w", err)
	}
	if config == nil {
		return nil, nil
	}
	return inbox.Open(a.state, *config), nil
}

// tellMessage says what the instructor said, apart from what the lab says.
func (a *app) tellMessage(w io.Writer, c *course.Course, m inbox.Message) {
	to := "you"
	if m.All {
		to = "everybody"
	}
	text := m.Text
	if m.Kind == inbox.Step {
		text = fmt.Sprintf("The room goes on with %s.\n`make join%s`, or key j in `make watch`, puts you at its start. Nothing changes before you do that.\n"+
			"Your work is saved first, and `make undo%s` brings it back.", labName(c, m.Lab), a.workspaceArg(), a.workspaceArg())
	}
	fmt.Fprintln(w)
	verdict.Rule(w, fmt.Sprintf("From the instructor to %s, %s", to, m.Sent.Local().Format("15:04")))
	for line := range strings.Lines(text) {
		fmt.Fprintln(w, strings.TrimRight("  "+strings.TrimRight(line, "\n"), " "))
	}
}

// labName is a lab as people call it. The instructor's course may have labs that this one lacks.
func labName(c *course.Course, n int) string {
	if lab, err := c.Lab(n); err == nil {
		return fmt.Sprintf("lab %d: %s", n, lab.Title)
	}
	return fmt.Sprintf("lab %d", n)
}

// listening makes answer ask the room's board as well, if there is one, what the instructor has said. told waits for
// that as long as for what is sent, and shows it.
func (a *app) listening(ctx context.Context, c *course.Course, answer answerFunc) (answered answerFunc, told func()) {
	heard := func() []inbox.Message { return nil }
	answered = func(results []*verdict.Result, cluster *clusters.Cluster) {
		answer(results, cluster)
		heard = inbox.Listen(ctx, a.state)
	}
	return answered, func() {
		for _, m := range heard() {
			a.tellMessage(a.out, c, m)
		}
	}
}
