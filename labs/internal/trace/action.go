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
	Actor string    `json:"actor,omitempty"`
	// Verb is empty for a change that is not worth a line.
	Verb string `json:"verb,omitempty"`
	// Kind and Name are what a reader sees of the object. Detail follows without a space.
	Kind   string `json:"kind,omitempty"`
	Name   string `json:"name,omitempty"`
	Detail string `json:"detail,omitempty"`
	// Namespace and Object are where the action belongs. Object is empty for what happens to a manager or a check.
	Namespace string `json:"namespace,omitempty"`
	Object    string `json:"object,omitempty"`
	// Version is the resourceVersion of the object since then, empty for what no watch shows.
	Version string `json:"version,omitempty"`
	// Others is how many more objects of the kind the actor did the same to at that time; see [Merge].
	Others int `json:"-"`
	// Times is how often the actor did it again, up to the time Last; see [Merge].
	Times int       `json:"-"`
	Last  time.Time `json:"-"`
}

// String is the action without actor and time, such as "created 3 Pods".
func (a Action) String() string {
	if a.Others > 0 {
		return fmt.Sprintf("%s %d %ss%s", a.Verb, a.Others+1, a.Kind, a.Detail)
	}
	return strings.TrimRight(strings.TrimRight(a.Verb+" "+a.Kind, " ")+" "+a.Name, " ") + a.Detail
}

const (
	// mergeWindow is what counts as the same time. Watches of several kinds deliver in any order within it, and three Pods in one row
	// are easier to read than three rows.
	mergeWindow = 150 * time.Millisecond
	// repeats is how often the same action is shown. A check that deletes a Deployment five times is shown in full, a loop is not.
	repeats = 6
)

// Merge puts together what an actor does to several objects of a kind within a moment, and counts what an actor repeats.
func Merge(actions []Action) (merged []Action) {
	type what struct{ actor, verb, kind, name, detail string }
	latest, count := map[what]int{}, map[what]int{} // latest is an index of merged
	for _, a := range actions {
		any, same := what{a.Actor, a.Verb, a.Kind, "", a.Detail}, what{a.Actor, a.Verb, a.Kind, "/" + a.Name, a.Detail}
		i, ok := latest[any]
		count[same]++
		switch {
		case ok && a.Name != merged[i].Name && a.At.Sub(merged[i].At) < mergeWindow:
			merged[i].Others++
		case count[same] > repeats, count[same] > 1 && strings.HasPrefix(a.Verb, "could not"): // controllers retry, and fail with the same words
			of := &merged[latest[same]]
			of.Times, of.Last = of.Times+1, a.At
		default:
			latest[any], latest[same] = len(merged), len(merged)
			merged = append(merged, a)
		}
	}
	return merged
}

var faint = color.New(color.Faint).Sprintf

// Print writes a line for each action, with the time since begun. Colours are on a terminal only, and not with NO_COLOR.
func Print(w io.Writer, begun time.Time, actions []Action) {
	for _, a := range actions {
		again := ""
		if a.Times > 0 {
			again = faint("  (%d more until %.2f s)", a.Times, a.Last.Sub(begun).Seconds())
		}
		fmt.Fprintf(w, "   %s  %-21s  %s%s\n", faint("%6.2f s", a.At.Sub(begun).Seconds()), plain.Line(a.Actor), plain.Line(a.String()), again)
	}
}
