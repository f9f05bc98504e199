// Command judge is the program of the judge's image.
//
//	judge check     in a Pod: judges what the Job was made for, and prints lines of JSON (hosted.Event); exit codes as of lab check
//	judge hand-in LABS SEED   in a container for grading: judges judge.HandInPath, and prints a judge.HandIn as JSON
//	judge ready     does nothing: whoever hears of that knows that containers work
//	judge cache [-keep] BASE OWN   a build cache for the Go command (GOCACHEPROG): buildcache.Cache
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

	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/buildcache"
	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log.SetLogger(logr.Discard()) // else controller-runtime's client complains that nobody did
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, exit.ErrFail) && !errors.Is(err, exit.ErrTold) {
		fmt.Fprintln(os.Stderr, "judge:", plain.Line(err.Error())) // in one line, which nobody takes for an answer
	}
	os.Exit(exit.Code(err))
}

func run(ctx context.Context, args []string) error {
	switch {
	case len(args) == 2 && args[0] == embedded.SuperviseCommand:
		return embedded.Supervise(args[1])
	case len(args) == 1 && args[0] == "check":
		v, err := judge.Check(ctx, os.Stdout)
		if err != nil {
			return told(ctx, err)
		}
		return v.Err()
	case len(args) == 1 && args[0] == judge.ReadyCommand:
		return nil
	case len(args) == 3 && args[0] == judge.HandInCommand:
		return handIn(ctx, args[1], args[2])
	case len(args) == 3 && args[0] == "cache":
		return buildcache.Cache{Base: args[1], Own: args[2]}.Serve(os.Stdin, os.Stdout)
	case len(args) == 4 && args[0] == "cache" && args[1] == "-keep":
		return buildcache.Cache{Base: args[2], Own: args[3], Keep: true}.Serve(os.Stdin, os.Stdout)
	}
	return exit.Usage("usage: judge check, judge hand-in or judge cache")
}

// handIn judges labs, numbers with commas between them.
func handIn(ctx context.Context, labs, seed string) error {
	var numbers []int
	for text := range strings.SplitSeq(labs, ",") {
		n, err := strconv.Atoi(text)
		if err != nil {
			return exit.Usage("labs: %w", err)
		}
		numbers = append(numbers, n)
	}
	drawn, err := strconv.ParseInt(seed, 10, 64)
	if err != nil {
		return exit.Usage("seed: %w", err)
	}
	return judge.CheckHandIn(ctx, numbers, drawn, os.Stdout, func(line string) { fmt.Fprintln(os.Stderr, "…", line) })
}

// told tells whoever asked for the Job what went wrong, but for the end of this Pod, which the Job replaces.
func told(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	judge.Tell(os.Stdout, err)
	return exit.Environment(exit.ErrTold)
}
