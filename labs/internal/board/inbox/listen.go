package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/example/operator-lab/labs/internal/board/outbox"
)

const (
	// turn is how long one request waits for news. A board may wait less.
	turn = 25 * time.Second
	// patience is how much longer its answer may take, over a weak Wi-Fi.
	patience = 10 * time.Second
	// pause is between two requests, and so what a message waits at most when it comes in between.
	pause = time.Second
	// longestPause is between two requests to a board that is away.
	longestPause = 30 * time.Second
)

// Listen asks the configured board beside what comes next. The function it returns waits for the answer, as long after
// the beginning as [outbox.SendLimit], and returns what was not shown yet; the caller shows it. It never fails: what
// cannot be heard now is heard the next time.
func Listen(ctx context.Context, state string) (wait func() []Message) {
	c, err := outbox.Configured(state)
	if err != nil || c == nil {
		return func() []Message { return nil } // the report to the board has said what is wrong with it
	}
	return Open(state, *c).listen(ctx)
}

func (i *Inbox) listen(ctx context.Context) (wait func() []Message) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), outbox.SendLimit)
	heard := make(chan []Message, 1)
	go func() {
		defer cancel()
		defer i.client.CloseIdleConnections() // the next check has a client of its own
		messages, err := i.Ask(ctx)
		if err != nil {
			heard <- nil
			return
		}
		fresh := i.Fresh(messages)
		i.Acknowledge(ctx, messages)
		heard <- fresh
	}()
	return func() []Message { return <-heard }
}

// Follow tells every message once, as soon as it is said, until ctx ends or the board turns this learner away. A board
// that is away is asked again.
func (i *Inbox) Follow(ctx context.Context, tell func(Message)) {
	tag, rest := "", pause
	for {
		messages, newTag, err := i.turn(ctx, tag)
		switch final := (turnedAway{}); {
		case errors.As(err, &final):
			return
		case err == nil:
			for _, m := range i.Fresh(messages) {
				tell(m)
			}
			i.Acknowledge(ctx, messages)
			tag, rest = newTag, pause
		case errors.Is(err, errUnchanged):
			rest = pause
		default:
			rest = min(2*rest, longestPause)
		}
		timer := time.NewTimer(rest)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
	}
}

// turn is one request that waits for news.
func (i *Inbox) turn(ctx context.Context, tag string) ([]Message, string, error) {
	ctx, cancel := context.WithTimeout(ctx, turn+patience)
	defer cancel()
	return i.get(ctx, tag, turn)
}
