// Command judge is the program of the judge's image.
//
//	judge check     in a Pod: judges what the Job was made for, and prints lines of JSON (hosted.Line); exit codes as of lab check
//	judge canary    in a Pod: tries what code in a sandbox reaches
//	judge prepare   while the image is made: compiles what it has ready
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/clusters/embedded"
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
	case len(args) == 1 && args[0] == "prepare":
		return judge.Prepare(ctx, func(line string) { fmt.Fprintln(os.Stderr, "…", line) })
	case len(args) == 1 && args[0] == "check":
		v, err := judge.Check(ctx, os.Stdout)
		if err != nil {
			return told(ctx, err)
		}
		return v.Err()
	case len(args) == 1 && args[0] == "canary":
		return told(ctx, judge.Canary(ctx, os.Stdout))
	}
	return exit.Usage("usage: judge check or judge canary")
}

// told tells whoever asked for the Job what went wrong, but for the end of this Pod, which the Job replaces.
func told(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	judge.Tell(os.Stdout, err)
	return exit.Environment(exit.ErrTold)
}
