package watch

import (
	"context"
	"fmt"
	"time"
)

// press does what a key asks for, and says whether that is to end.
func (s *Session) press(ctx context.Context, key Key) (quit bool) {
	switch key {
	case Quit:
		return true
	case Again:
		s.again(ctx, occasion{since: time.Now(), after: "key"})
	case Hint:
		s.hint()
	case Next:
		s.goOn(ctx)
	}
	return false
}

func (s *Session) hint() {
	if !s.judged[s.Lab] {
		s.say(fmt.Sprintf("lab %d has no verdict yet: h tells a hint after it", s.Lab))
		return
	}
	if err := s.Hint(s.Lab); err != nil {
		s.complain(err)
	}
	if s.waiting() {
		s.prompt()
	}
}

// goOn begins with the next lab once this one has passed.
func (s *Session) goOn(ctx context.Context) {
	switch {
	case !s.waiting():
		s.say(fmt.Sprintf("lab %d is being checked: n goes on once it has passed", s.Lab))
	case !s.passed:
		s.say(fmt.Sprintf("lab %d has not passed: n goes on once it has", s.Lab))
	case s.Lab == s.Labs:
		s.say(fmt.Sprintf("lab %d was the last one", s.Lab))
	default:
		s.Lab++
		s.again(ctx, occasion{since: time.Now(), after: "key"})
	}
}

// waiting says whether there is nothing to come before the next save or key.
func (s *Session) waiting() bool {
	return s.next == nil && (s.current == nil || s.current.settled)
}
