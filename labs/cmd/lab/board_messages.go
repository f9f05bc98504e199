package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/internal/board/store"
	"github.com/example/operator-lab/labs/internal/exit"
)

func newBoardSendCommand(b *board) *cobra.Command {
	var to string
	var all bool
	cmd := &cobra.Command{
		Use:   "send TEXT",
		Short: "Send a hint to one learner or to all, as the page does",
		Args:  one(`board send --to learner-3 "What do you read in the first failure?"`),
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (to != "") {
				return exit.Usage("say to whom: --to NAME, or --all")
			}
			return b.send(cmd.Context(), store.Message{Kind: store.Hint, Text: args[0]}, to)
		},
	}
	cmd.Flags().StringVar(&to, "to", "", "name of the learner")
	cmd.Flags().BoolVar(&all, "all", false, "to everybody")
	return cmd
}

func newBoardStepCommand(b *board) *cobra.Command {
	return &cobra.Command{
		Use:   "step N",
		Short: "Ask everybody to go on at the start of lab N; each confirms, and their work is saved",
		Args:  one("board step N, such as board step 5"),
		RunE: func(cmd *cobra.Command, args []string) error {
			_, n, err := b.lab(args[0])
			if err != nil {
				return err
			}
			return b.send(cmd.Context(), store.Message{Kind: store.Step, Lab: n}, "")
		},
	}
}

// send puts a message on the board; one that serves brings it to learners within a second. to is a learner's name, or
// "" for everybody.
func (b *board) send(ctx context.Context, m store.Message, to string) (err error) {
	s, err := b.openExisting(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	whom := "everybody"
	if to != "" {
		if m.Learner, err = learnerID(ctx, s, to); err != nil {
			return err
		}
		whom = to
	}
	err = s.AddMessage(ctx, &m)
	if errors.Is(err, store.ErrMessage) {
		return exit.Usage("%w", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(b.out, "Sent to %s. The page shows who has seen it.\n", whom)
	return nil
}

func learnerID(ctx context.Context, s *store.Store, name string) (int64, error) {
	learners, err := s.Learners(ctx)
	if err != nil {
		return 0, err
	}
	for _, l := range learners {
		if l.Name == name {
			return l.ID, nil
		}
	}
	return 0, exit.Usage("nobody in this room is called %q: the page and lab board token list have the names", name)
}
