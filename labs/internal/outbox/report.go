package outbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// SendLimit is how long sending may take after the answer was given. Deleting the cluster takes longer on kind;
// what is not sent then waits for the next check.
const SendLimit = time.Second

// Report puts results into the outbox of the configured board and sends them beside what comes next. The
// function it returns waits until they are sent or [SendLimit] is over; it never fails. Without a configuration
// nothing happens. tell gets a line when something is worth one.
func Report(ctx context.Context, state string, results []*verdict.Result, tell func(line string)) (wait func()) {
	c, err := Configured(state)
	if err == nil && c == nil {
		return func() {}
	}
	if err != nil {
		tell(fmt.Sprintf("the board hears nothing of this: %v", err))
		return func() {}
	}
	box := Open(state, *c)
	if err := box.Put(results); err != nil {
		tell(fmt.Sprintf("the board hears nothing of this: %v", err))
		return func() {}
	}
	return box.deliver(ctx, tell)
}

// deliver sends what waits beside what comes next. The function it returns waits for the end of it.
func (o *Outbox) deliver(ctx context.Context, tell func(line string)) (wait func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), SendLimit)
	line := make(chan string, 1)
	go func() {
		defer cancel()
		defer o.client.CloseIdleConnections() // the next check has a client of its own
		line <- outcome(o.Flush(ctx))
	}()
	return func() {
		if text := <-line; text != "" {
			tell(text)
		}
	}
}

// outcome says what a flush has come to, "" when all is well.
func outcome(left int, err error) string {
	switch {
	case err == nil:
		return ""
	case left == 0:
		return err.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Sprintf("the board does not answer; %d of your results wait for it, and the next check sends them", left)
	}
	return fmt.Sprintf("%v; %d of your results wait, and the next check sends them", err, left)
}
