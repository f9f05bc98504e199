//go:build unix

// Command schoolday plays a day in a classroom on this machine, and tells what happened and how long it took. It ends
// with exit code 1 at the first thing that is not as it should be. See package schoolday.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/example/operator-lab/labs/internal/schoolday"
)

func main() {
	os.Exit(run())
}

func run() int {
	o := schoolday.Options{Out: os.Stdout}
	flag.IntVar(&o.Learners, "learners", 10, "how many learners there are")
	flag.StringVar(&o.Cluster, "cluster", "kind", "kind of the learners' own clusters: kind or embedded")
	flag.StringVar(&o.Verdicts, "verdicts", "", "kind of cluster that checks run on (default: what the handout says)")
	flag.Int64Var(&o.Seed, "seed", 1, "draws the wrong answers")
	flag.Parse()
	if flag.NArg() > 0 || o.Learners < 1 {
		fmt.Fprintln(os.Stderr, "schoolday takes flags only, and at least one learner; see -help")
		return 2
	}
	var err error
	if o.Root, err = os.Getwd(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 3
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	err = schoolday.Run(ctx, o)
	switch {
	case errors.Is(err, context.Canceled):
		return 130
	case errors.Is(err, schoolday.ErrOccupied):
		fmt.Fprintln(os.Stderr, err)
		return 2
	case err != nil:
		fmt.Fprintln(os.Stderr, "not as it should be:", err)
		return 1
	}
	return 0
}
