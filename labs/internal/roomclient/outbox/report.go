package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// SendLimit is how long sending may take after the answer was given. Deleting the cluster takes longer on kind;
// what is not sent then waits for the next check.
const SendLimit = time.Second

// Report puts results into the outbox of the configured board and sends them beside what comes next. The
// function it returns waits until they are sent or [SendLimit] is over; it never fails. Without a configuration
// nothing happens; one that LAB_BOARD names has to be there. tell gets a line when something is worth one.
func Report(ctx context.Context, state string, results []*verdict.Result, tell func(line string)) (wait func()) {
	c, err := roomclient.ReadConfig(state)
	if errors.Is(err, os.ErrNotExist) && os.Getenv(roomclient.ConfigVariable) == "" {
		return func() {}
	}
	var box *Outbox
	if err == nil {
		box = Open(state, *c)
		err = box.Put(results)
	}
	if err != nil {
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
