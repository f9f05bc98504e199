// Package trace shows who did what to the objects of Kubernetes, and when, as a table of [Action]s. Its sources are watches, the
// names of writers that the API server keeps in managedFields, and the proxy's record of the learner's manager.
package trace

import (
	"fmt"
	"io"
	"slices"
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
	// Kind and Name are those of the object, empty for what happens to a manager or a check. Detail follows without a space.
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
		fmt.Fprintf(w, "   %s  %-21s  %s\n", faint("%6.2f s", a.At.Sub(begun).Seconds()), plain.Line(a.Actor), plain.Line(a.String()))
	}
	if more > 0 {
		fmt.Fprintln(w, faint("   … and %d more that repeat one of these", more))
	}
}

// Line tells what a check saw in one line: what began it, and what each side did. Of a check that failed it also says that the manager
// did nothing after what you did last.
func Line(actions []Action, failed bool) string {
	if len(actions) == 0 {
		return ""
	}
	first, last := map[string]int{}, map[string]int{} // indexes by actor; those of an actor who did nothing are 0
	for i, a := range slices.Backward(actions) {
		first[a.Actor], last[a.Actor] = i, max(i, last[a.Actor])
	}
	chosen := []int{0, last[You], first[Manager], last[Manager], first["deployment-controller"], last["deployment-controller"]}
	slices.Sort(chosen)
	var parts []string
	for _, i := range slices.Compact(chosen) {
		a := actions[i]
		if i > 0 && a.Name != "" && strings.HasPrefix(a.Name, actions[0].Name) { // named after the first Memcached
			a.Kind, a.Name = "the "+a.Kind, ""
		}
		a.Detail = plain.Short(a.Detail, 40)
		parts = append(parts, fmt.Sprintf("%.2f s %s %s", a.At.Sub(actions[0].At).Seconds(), a.Actor, a))
	}
	end := actions[len(actions)-1]
	if idle := end.At.Sub(actions[last[You]].At); failed && end.Verb == ended && last[Manager] <= last[You] && idle > time.Second {
		parts = append(parts, fmt.Sprintf("then nothing from your manager for %.1f s", idle.Seconds()))
	}
	return strings.Join(parts, " · ")
}
