// Package trace shows who did what to the objects of Kubernetes, and when. Its sources are watches and, for a learner's
// manager, the recording proxy. The API server notes in managedFields who wrote a field.
package trace

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// You is the actor of what a person does, or a check in a person's place.
const You = "you"

// Action is one thing that somebody did.
type Action struct {
	At    time.Time
	Actor string
	Verb  string
	// Kind and Name are what it was done to; Count is 1, or more after actions were put together.
	Kind, Name string
	Count      int
	// Detail follows without a space.
	Detail string
	// Of is the object that the action is about. Name may be less: an action about a status names no object.
	Of types.NamespacedName
	// Times is how often it was done again, up to the time Last; see [Fold].
	Times int
	Last  time.Time
}

// String is the action without actor and time, such as "created 3 Pods".
func (d Action) String() string {
	words := []string{d.Verb, d.Kind, d.Name}
	if d.Count > 1 {
		words = []string{d.Verb, strconv.Itoa(d.Count), d.Kind + "s"}
	}
	return strings.TrimRight(strings.Join(slices.DeleteFunc(words, func(w string) bool { return w == "" }), " "), " ") + d.Detail
}

// Together puts actions of the same actor that differ in names alone into one, in the place of the first:
// what follows from any of them still stands behind it.
func Together(actions []Action) []Action {
	var result []Action
	for _, d := range actions {
		i := slices.IndexFunc(result, func(o Action) bool {
			return o.Actor == d.Actor && o.Verb == d.Verb && o.Kind == d.Kind && o.Detail == d.Detail && o.Name != d.Name
		})
		if i < 0 {
			result = append(result, d)
			continue
		}
		result[i].Count += d.Count
	}
	return result
}

// maxRepeats is how often the same action is shown before the rest is only counted. A check that deletes a
// Deployment five times is still shown in full; a loop is not.
const maxRepeats = 6

// Fold counts what is done again and again, instead of showing it: the last one that is shown says how
// often it was repeated, and until when.
func Fold(actions []Action) []Action {
	type same struct{ actor, verb, kind, name, detail string }
	seen, last := map[same]int{}, map[same]int{}
	var result []Action
	for _, d := range actions {
		key := same{d.Actor, d.Verb, d.Kind, d.Name, d.Detail}
		limit := maxRepeats
		if strings.HasPrefix(d.Verb, "could not") {
			limit = 1 // Kubernetes tries again and again, and says so each time
		}
		if seen[key]++; seen[key] <= limit {
			last[key] = len(result)
			result = append(result, d)
			continue
		}
		of := &result[last[key]]
		of.Times += 1 + d.Times
		of.Last = d.At
		if d.Last.After(d.At) {
			of.Last = d.Last
		}
	}
	return result
}
