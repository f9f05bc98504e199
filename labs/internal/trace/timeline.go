package trace

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

// Manager is the actor of what the learner's program does.
const Manager = "your manager"

// Timeline is what happened around one Memcached of a check, from the moment the check touched the world
// until it ended.
type Timeline struct {
	// Check is the id of the check that made the Memcached.
	Check string
	// Of is the Memcached.
	Of types.NamespacedName
	// Begun is the time of the first action; Ended is when the check took its namespace away, zero when it
	// was not seen.
	Begun, Ended time.Time
	Actions      []Action
	// Omitted is how many changes came too often to be recorded.
	Omitted int
}

// How much is kept of a run whose manager makes Memcacheds of its own, or without an end: at most this many in a namespace and
// in all, and this many actions of one and of all. A check makes ten, which take some hundred actions each.
const (
	inNamespace, inAll = 50, 1000
	ofOne, ofAll       = 2000, 50_000
)

// Timelines are those of all Memcacheds that the checks made, in the order in which they begin.
func (r *Recording) Timelines() []*Timeline {
	t := newMerger(r)
	timelines := t.timelines()
	byNamespace := map[string][]*Timeline{}
	for _, s := range timelines {
		byNamespace[s.Of.Namespace] = append(byNamespace[s.Of.Namespace], s)
	}
	kept := 0
	for _, d := range t.actions() {
		near := byNamespace[d.Of.Namespace]
		if CheckOf(d.Of.Namespace) == "" {
			near = timelines
		}
		for _, s := range concerned(d, near) {
			switch {
			case !s.Ended.IsZero() && !d.At.Before(s.Ended): // it belongs to the tidying up
			case kept == ofAll || len(s.Actions) == ofOne:
				s.Omitted++
			default:
				s.Actions = append(s.Actions, d)
				kept++
			}
		}
	}
	for _, s := range timelines {
		for _, o := range r.Omitted {
			if o.Namespace == s.Of.Namespace && strings.Contains(o.Name, s.Of.Name) {
				s.Omitted += o.Changes
			}
		}
		s.finish(r.Notes)
	}
	timelines = slices.DeleteFunc(timelines, func(s *Timeline) bool { return len(s.Actions) == 0 })
	slices.SortStableFunc(timelines, func(a, b *Timeline) int { return a.Begun.Compare(b.Begun) })
	return timelines
}

// timelines are those without their actions: one for each Memcached in a check's namespace, the first ones of many.
func (t *merger) timelines() []*Timeline {
	var timelines []*Timeline
	seen, made := map[types.NamespacedName]bool{}, map[string]int{}
	for _, s := range t.observations {
		m, ok := s.Object.(*unstructured.Unstructured)
		if !ok {
			continue
		}
		of := types.NamespacedName{Namespace: m.GetNamespace(), Name: m.GetName()}
		check := CheckOf(of.Namespace)
		if seen[of] || check == "" || made[of.Namespace] == inNamespace || len(timelines) == inAll {
			continue
		}
		seen[of] = true
		made[of.Namespace]++
		timelines = append(timelines, &Timeline{Check: check, Of: of, Ended: t.ended[of.Namespace]})
	}
	return timelines
}

// NamespacePrefix begins the names of the namespaces that checks work in. The check's id follows, and
// what the API server makes up.
const NamespacePrefix = "lab-"

var checkNamespace = regexp.MustCompile(`^` + NamespacePrefix + `(.+)-[a-z0-9]{5}$`)

// CheckOf is the id of the check that a namespace was made for, "" when it was made for none.
func CheckOf(namespace string) string {
	if m := checkNamespace.FindStringSubmatch(namespace); m != nil {
		return m[1]
	}
	return ""
}

// concerned are those of some timelines that an action belongs to: it is about an object whose name has the Memcached's in it,
// as the names of everything that was made for it do; or about one in its namespace that has nobody else to belong to. Names
// are drawn, so that they are in no other by accident.
func concerned(d Action, near []*Timeline) []*Timeline {
	var named []*Timeline
	for _, s := range near {
		if strings.Contains(d.Of.Name, s.Of.Name) {
			named = append(named, s)
		}
	}
	switch {
	case len(named) > 0 || CheckOf(d.Of.Namespace) == "":
		return named
	case d.Of.Name == "" && len(near) > 1:
		return nil
	}
	return near
}

// moment is how long to gather what happens at almost the same time: three Pods make better reading
// than one Pod three times.
const moment = 150 * time.Millisecond

// finish puts the actions into the form in which they are shown, and what happened to the manager between
// them.
func (s *Timeline) finish(notes []Note) {
	if len(s.Actions) == 0 {
		return
	}
	s.Begun = s.Actions[0].At
	for _, n := range ownNotes(notes, s.Of.Namespace) {
		if n.At.Before(s.Begun) || !s.Ended.IsZero() && n.At.After(s.Ended) {
			continue
		}
		s.Actions = append(s.Actions, Action{At: n.At, Actor: n.Actor, Verb: n.Text, Count: 1})
	}
	slices.SortStableFunc(s.Actions, func(a, b Action) int { return a.At.Compare(b.At) })
	var result []Action
	for rest := s.Actions; len(rest) > 0; {
		end := 1
		for end < len(rest) && rest[end].At.Sub(rest[0].At) < moment {
			end++
		}
		result = append(result, Together(rest[:end])...)
		rest = rest[end:]
	}
	s.Actions = Fold(result)
}

// ownNotes are those on the manager that worked in the namespace.
func ownNotes(notes []Note, namespace string) []Note {
	return slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.Namespace != namespace })
}

func podStarted(d Action) bool { return d.Kind == "Pod" && d.Verb == "started" }

// Reached says how far the timeline got: 2 when the Memcached was reported as available, 1 when Pods of it
// ran, else 0.
func (s *Timeline) Reached() int {
	reached := 0
	for _, d := range s.Actions {
		switch {
		case d.Kind == available+"True":
			reached = 2
		case podStarted(d):
			reached = max(reached, 1)
		}
	}
	return reached
}
