// Command judge is the program of a container that judges.
//
//	judge check LABS SEED   judges hosted.HandInPath, and prints a hosted.Answer as JSON
//	judge ready                   does nothing: whoever hears of that knows that containers work
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // else controller-runtime's client complains that nobody did
	err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "judge:", plain.Line(err.Error()))
	}
	os.Exit(exit.Code(err))
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 1 && args[0] == judge.ReadyCommand:
		return nil
	case len(args) == 3 && args[0] == hosted.CheckCommand:
		var labs []int
		for text := range strings.SplitSeq(args[1], ",") {
			n, err := strconv.Atoi(text)
			if err != nil {
				return exit.Usage("labs: %w", err)
			}
			labs = append(labs, n)
		}
		seed, err := strconv.ParseInt(args[2], 10, 64)
		if err != nil {
			return exit.Usage("seed: %w", err)
		}
		return judge.Check(ctx, labs, seed, os.Stdout, func(line string) { fmt.Fprintln(os.Stderr, "…", line) })
	}
	return errors.New("usage: judge check LABS SEED")
}
