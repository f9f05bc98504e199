// Package exit maps errors to the exit codes that the lab command promises.
package exit

import (
	"context"
	"errors"
	"fmt"

	"github.com/example/operator-lab/clusters/nodeimage"
)

// The exit codes of the lab command. Scripts rely on them.
const (
	OK               = 0   // every check holds, or the command did what it was asked to
	Fail             = 1   // the learner's code is judged, and something does not hold
	UsageError       = 2   // the command line or its input is wrong; nothing was changed
	EnvironmentError = 3   // the machine, the engine or the cluster is at fault, or the lab itself
	Interrupted      = 130 // a signal ended the command; no result was written
)

var (
	// ErrFail is what a command returns when its report already told everything and the verdict is fail.
	ErrFail = errors.New("the checks do not hold yet")
	// ErrTold is what a command returns when its report already told what is wrong with the machine.
	ErrTold = errors.New("the report has told what is wrong")
)

type coded struct {
	error
	code int
}

func (c *coded) Unwrap() error { return c.error }

// Usage is an error about the command line or its input, said in one line. Its exit code is 2.
func Usage(format string, args ...any) error {
	return &coded{fmt.Errorf(format, args...), UsageError}
}

// Environment marks err as the fault of the machine or of the lab. Its exit code is 3.
func Environment(err error) error {
	return &coded{err, EnvironmentError}
}

// Code is the exit code for err: 130 for a cancelled context, 1 for [ErrFail], else that which [Usage] or [Environment] set. It is 2
// for a [nodeimage.InputError]. Any other error is the machine's: 3.
func Code(err error) int {
	var c *coded
	var image *nodeimage.InputError
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, ErrFail):
		return Fail
	case errors.As(err, &c):
		return c.code
	case errors.As(err, &image):
		return UsageError
	default:
		return EnvironmentError
	}
}
