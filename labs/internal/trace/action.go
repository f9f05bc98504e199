// Package trace shows who did what to the objects of Kubernetes, and when, as a table of [Action]s. Its sources are watches, the
// names of writers that the API server keeps in managedFields, and the proxy's record of the learner's manager.
package trace

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fatih/color"

	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// You is the actor of what a person does, or a check in a person's place.
	You = "you"
	// Manager is the actor of what the learner's program does.
	Manager = "your manager"
)

// Action is a row of a trace: somebody did something to an object.
type Action struct {
	At    time.Time `json:"at"`
	Actor string    `json:"actor"`
	Verb  string    `json:"verb"`
	// Kind and Name are those of the object, empty for what happens to a manager or a check. Detail is put right behind the name.
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Namespace is where it was done.
	Namespace string `json:"namespace,omitempty"`
}

// String is the action without actor and time, such as "created Pod tea".
func (a Action) String() string {
	return strings.Join(strings.Fields(a.Verb+" "+a.Kind+" "+a.Name), " ") + a.Detail
}

// Print writes a line for each action, with the time since begun. Of what an actor does to many objects, or again and again, it shows
// the first six. Colours are on a terminal only, and not with NO_COLOR.
func Print(w io.Writer, begun time.Time, actions []Action) {
	faint, count, more := color.New(color.Faint).Sprintf, map[Action]int{}, 0
	for _, a := range actions {
		same := Action{Actor: a.Actor, Verb: a.Verb, Kind: a.Kind, Detail: a.Detail}
		if count[same]++; count[same] > 6 {
			more++
			continue
		}
		head := fmt.Sprintf("   %s  %-21s  ", faint("%6.2f s", a.At.Sub(begun).Seconds()), plain.Line(a.Actor))
		fmt.Fprint(w, plain.Fold(head, plain.Line(a.String())))
	}
	if more > 0 {
		fmt.Fprintln(w, faint("   … and %d more that repeat one of these", more))
	}
}
