package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"reflect"
	"time"

	"github.com/example/operator-lab/labs/internal/board/page"
	"github.com/example/operator-lab/labs/internal/board/room"
	"github.com/example/operator-lab/labs/internal/board/store"
)

// mail is what instructors said and learners answered, as the store has it.
type mail struct {
	// messages are those in force, the oldest first.
	messages []store.Message
	// answers are the last of each learner, by message. Having seen a message is the least of them.
	answers map[string]map[int64]store.Answer
	// last is the id of the last receipt that was read.
	last int64
	// said is closed when the messages are others, and replaced.
	said chan struct{}
}

func newMail() mail {
	return mail{answers: map[string]map[int64]store.Answer{}, said: make(chan struct{})}
}

// read takes from the store what it has got since the last time, from whatever process.
func (m *mail) read(ctx context.Context, s *store.Store) error {
	messages, err := s.Messages(ctx)
	if err != nil {
		return err
	}
	receipts, err := s.Receipts(ctx, m.last)
	if err != nil {
		return err
	}
	for _, r := range receipts {
		m.last = r.ID
		of := m.answers[r.Message]
		if of == nil {
			of = map[int64]store.Answer{}
			m.answers[r.Message] = of
		}
		if r.Answer != store.Seen || of[r.Learner] == "" {
			of[r.Learner] = r.Answer
		}
	}
	if !reflect.DeepEqual(messages, m.messages) {
		m.messages = messages
		close(m.said)
		m.said = make(chan struct{})
	}
	return nil
}

// letter is a message as its learner gets it.
type letter struct {
	ID   string     `json:"id"`
	Kind store.Kind `json:"kind"`
	Text string     `json:"text,omitempty"`
	Lab  int        `json:"lab,omitempty"`
	Sent time.Time  `json:"sent"`
	// All: it is not for this learner alone.
	All bool `json:"all"`
	// Answer is what the learner's side has answered last, "" if nothing.
	Answer store.Answer `json:"answer,omitempty"`
}

// letters are the messages for a learner and those for everybody, and nobody else's. tag is another one when the list
// is, and said is closed then.
func (l *live) letters(learner int64) (list []letter, tag string, said <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	list = []letter{}
	sum := sha256.New()
	for _, m := range l.mail.messages {
		if !m.For(learner) {
			continue
		}
		list = append(list, letter{
			ID: m.ID, Kind: m.Kind, Text: m.Text, Lab: m.Lab, Sent: m.Sent, All: m.Learner == 0, Answer: l.mail.answers[m.ID][learner],
		})
		sum.Write([]byte(m.ID))
	}
	return list, `"` + hex.EncodeToString(sum.Sum(nil)[:8]) + `"`, l.mail.said
}

// messages are those of the page, the latest first.
func (l *live) messages() []page.Message {
	all := []page.Message{}
	for i := len(l.mail.messages) - 1; i >= 0; i-- {
		m := &l.mail.messages[i]
		answers := l.mail.answers[m.ID]
		switch to := l.learners[m.Learner]; {
		case m.Kind == store.Step && m.Lab <= len(l.course.Labs):
			following := room.Follow(l.sorted, l.course.Labs, m.Lab, who(answers, store.Joined), who(answers, store.Stays))
			all = append(all, page.NewStep(m.ID, l.course.Labs[m.Lab-1], m.Sent, following))
		case m.Kind != store.Hint: // of a course that had more labs
		case m.Learner == 0:
			all = append(all, page.NewHint(m.ID, m.Text, m.Sent, len(answers), len(l.sorted)))
		case to != nil:
			all = append(all, page.NewHintTo(m.ID, to.Name, m.Text, m.Sent, len(answers) > 0))
		}
	}
	return all
}

// who gave that answer.
func who(answers map[int64]store.Answer, answer store.Answer) map[int64]bool {
	those := map[int64]bool{}
	for learner, a := range answers {
		those[learner] = a == answer
	}
	return those
}
