package page

import (
	"fmt"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/board/room"
	"github.com/example/operator-lab/labs/internal/course"
)

// Message is a line of what was said to the room.
type Message struct {
	ID string `json:"id"`
	// To is a name, or everybody.
	To   string `json:"to"`
	Text string `json:"text"`
	Sent string `json:"sent"`
	// State says what has become of it.
	State string `json:"state"`
}

const everybody = "everybody"

// NewHint is a hint to everybody, which so many of the room have seen.
func NewHint(id, text string, sent time.Time, seen, of int) Message {
	return Message{ID: id, To: everybody, Text: text, Sent: clock(sent), State: fmt.Sprintf("seen by %d of %d", seen, of)}
}

// NewHintTo is a hint to one learner.
func NewHintTo(id, to, text string, sent time.Time, seen bool) Message {
	m := Message{ID: id, To: to, Text: text, Sent: clock(sent), State: "not seen yet"}
	if seen {
		m.State = "seen"
	}
	return m
}

// NewStep brings everybody to a lab, as far as they follow.
func NewStep(id string, lab *course.Lab, sent time.Time, f room.Following) Message {
	verb := "are"
	if len(f.There) == 1 {
		verb = "is"
	}
	state := fmt.Sprintf("%d of %d %s at lab %d", len(f.There), len(f.There)+len(f.Stay)+len(f.Waiting), verb, lab.Number)
	if len(f.Waiting) > 0 {
		state += "; waiting for: " + names(f.Waiting)
	}
	if len(f.Stay) > 0 {
		state += "; staying where they are: " + names(f.Stay)
	}
	return Message{ID: id, To: everybody, Text: fmt.Sprintf("Go on with lab %d: %s", lab.Number, lab.Title), Sent: clock(sent), State: state}
}

func clock(t time.Time) string { return t.Local().Format("15:04") }

// names are the first of them, and how many more there are.
func names(of []*room.Learner) string {
	var all []string
	for _, l := range of[:min(len(of), namesShown)] {
		all = append(all, l.Name)
	}
	text := strings.Join(all, ", ")
	if more := len(of) - namesShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
