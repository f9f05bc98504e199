package trace

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Timeline is what happened around one Memcached of a check, from its creation until the check ended.
type Timeline struct {
	// Check is the id of the check that made the Memcached.
	Check string
	// Of is the Memcached.
	Of      types.NamespacedName
	Actions []Action
}

// NamespacePrefix begins the names of the namespaces that checks work in. The check's id follows, and random letters.
const NamespacePrefix = "lab-"

var checkNamespace = regexp.MustCompile(`^` + NamespacePrefix + `(.+)-[a-z0-9]{5}$`)

// CheckOf is the id of the check that a namespace was made for, "" when it was made for none.
func CheckOf(namespace string) string {
	if m := checkNamespace.FindStringSubmatch(namespace); m != nil {
		return m[1]
	}
	return ""
}

// ended is the verb of a check that ends.
const ended = "ended"

// Timelines are those of all Memcacheds that the checks made, in the order of their creation.
func (r *Recording) Timelines() []*Timeline {
	var timelines []*Timeline
	table := r.table()
	for _, a := range table {
		if check := CheckOf(a.Namespace); check != "" && a.Kind == "Memcached" && a.Verb == "created" {
			timelines = append(timelines, &Timeline{Check: check, Of: types.NamespacedName{Namespace: a.Namespace, Name: a.Object}})
		}
	}
	for _, a := range table {
		ofCheck := CheckOf(a.Namespace) != ""
		near := slices.DeleteFunc(slices.Clone(timelines), func(t *Timeline) bool { return t.ended() || ofCheck && a.Namespace != t.Of.Namespace })
		own := slices.DeleteFunc(slices.Clone(near), func(t *Timeline) bool { return !strings.Contains(a.Object, t.Of.Name) })
		if len(own) == 0 { // nothing that was made for a Memcached, whose name it would have in its own
			own = slices.DeleteFunc(near, func(t *Timeline) bool { return len(t.Actions) == 0 || a.Namespace != t.Of.Namespace })
		}
		for _, t := range own {
			t.Actions = append(t.Actions, a)
		}
	}
	for _, t := range timelines {
		t.causeFirst()
		t.Actions = Merge(t.Actions)
	}
	return timelines
}

func (t *Timeline) ended() bool {
	last := len(t.Actions) - 1
	return last >= 0 && t.Actions[last].Verb == ended && t.Actions[last].Object == ""
}

// causeFirst puts the creation of the Memcached before what the manager did about it: the watch of a new kind may be late.
func (t *Timeline) causeFirst() {
	created := t.first(func(a Action) bool { return a.Kind == "Memcached" && a.Verb == "created" })
	if did := t.first(by(Manager)); did >= 0 && did < created {
		creation := t.Actions[created]
		creation.At = t.Actions[did].At
		t.Actions = slices.Insert(slices.Delete(t.Actions, created, created+1), did, creation)
	}
}

// About is the timeline of a check that a text is about: the one whose Memcached it names, else the first; nil when the check made
// no Memcached.
func About(timelines []*Timeline, check, text string) *Timeline {
	var first *Timeline
	for _, t := range timelines {
		switch {
		case t.Check != check:
		case strings.Contains(text, t.Of.Name):
			return t
		case first == nil:
			first = t
		}
	}
	return first
}

// Fullest is the timeline of the checks with the most actions, nil when no check made a Memcached.
func Fullest(timelines []*Timeline, checks []string) *Timeline {
	var best *Timeline
	for _, check := range checks {
		if t := About(timelines, check, ""); t != nil && (best == nil || len(t.Actions) > len(best.Actions)) {
			best = t
		}
	}
	return best
}

const (
	// idleAfter is for how long a manager may do nothing before the line of a failed check says so.
	idleAfter = time.Second
	// lineDetail is how many characters of a detail a line shows.
	lineDetail = 40
)

// Line is the timeline in one line: what began it, what each side did, and how it came out. Of a check that failed it also says
// that the manager did nothing after what you did last.
func (t *Timeline) Line(failed bool) string {
	if len(t.Actions) == 0 {
		return ""
	}
	last, end := t.last(by(You)), t.Actions[len(t.Actions)-1]
	chosen := []int{
		0, last, t.first(by(Manager)), t.last(by(Manager)), t.first(by("deployment-controller")), t.last(verb("counted")), t.last(verb("reported")),
	}
	slices.Sort(chosen)
	var parts []string
	for _, i := range slices.Compact(chosen) {
		if i < 0 {
			continue
		}
		a := t.Actions[i]
		if named := a.Name == t.Of.Name || strings.HasPrefix(a.Name, t.Of.Name+"-") && a.Kind != "Deployment"; named && a.Others == 0 && i > 0 {
			a.Kind, a.Name = "the "+a.Kind, ""
		}
		if detail := []rune(a.Detail); a.Verb == "reported" {
			a.Detail = ""
		} else if len(detail) > lineDetail {
			a.Detail = string(detail[:lineDetail]) + "…"
		}
		parts = append(parts, fmt.Sprintf("%.2f s %s %s", a.At.Sub(t.Actions[0].At).Seconds(), a.Actor, a))
	}
	if idle := end.At.Sub(t.Actions[max(0, last)].At); failed && end.Verb == ended && t.last(by(Manager)) < last && idle > idleAfter {
		parts = append(parts, fmt.Sprintf("then nothing from your manager for %.1f s", idle.Seconds()))
	}
	return strings.Join(parts, " · ")
}

func by(actor string) func(Action) bool  { return func(a Action) bool { return a.Actor == actor } }
func verb(verb string) func(Action) bool { return func(a Action) bool { return a.Verb == verb } }

func (t *Timeline) first(is func(Action) bool) int { return slices.IndexFunc(t.Actions, is) }

func (t *Timeline) last(is func(Action) bool) int {
	for i := len(t.Actions) - 1; i >= 0; i-- {
		if is(t.Actions[i]) {
			return i
		}
	}
	return -1
}

// Print writes the whole timeline, one action in a line.
func (t *Timeline) Print(w io.Writer) {
	if len(t.Actions) > 0 {
		Print(w, t.Actions[0].At, t.Actions)
	}
}
