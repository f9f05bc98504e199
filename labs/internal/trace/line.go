package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	// lineActions is how many actions one line shows.
	lineActions = 6
	// lineDetail is how much of a detail one line shows.
	lineDetail = 40
	// silenceLimit is how long a manager may be silent before that is worth a word.
	silenceLimit = time.Second
)

// Line is the timeline in one line: what began it, what each side did, and how it came out. Of a check
// that failed it also says when the manager had no answer to what was done last.
func (s *Timeline) Line(failed bool) string {
	var parts []string
	for i, d := range s.milestones() {
		words := s.short(d)
		if i == 0 {
			words = d.String()
		}
		if !strings.HasPrefix(d.Kind, available) {
			words = d.Actor + " " + words
		}
		parts = append(parts, fmt.Sprintf("%.2f s %s", d.At.Sub(s.Begun).Seconds(), words))
	}
	if since := s.unanswered(); failed && since > silenceLimit {
		parts = append(parts, fmt.Sprintf("then nothing from your manager for %.1f s", since.Seconds()))
	}
	return strings.Join(parts, " · ")
}

// unanswered is how long the manager did nothing between what you did last and the end of the check; 0
// when it did something, or the end was not seen.
func (s *Timeline) unanswered() time.Duration {
	did := s.last(by(You))
	if s.Ended.IsZero() || did < 0 || s.last(by(Manager)) > did {
		return 0
	}
	return s.Ended.Sub(s.Actions[did].At)
}

func by(actor string) func(Action) bool { return func(d Action) bool { return d.Actor == actor } }

// short is an action without what a reader of the line knows: the name of the Memcached and of what is
// named after it, and the words of a condition.
func (s *Timeline) short(d Action) string {
	switch {
	case strings.HasPrefix(d.Kind, available):
		return d.Kind
	case d.Name != "" && d.Count == 1 && (d.Name == s.Of.Name || strings.HasPrefix(d.Name, s.Of.Name+"-") && d.Kind != "Deployment"):
		d.Kind, d.Name = "the "+strings.TrimPrefix(d.Kind, "the "), ""
	}
	d.Detail = cut(d.Detail, lineDetail)
	return d.String()
}

// milestones are the actions that a line shows, in the order in which they happened.
func (s *Timeline) milestones() []Action {
	made := func(kind string) func(Action) bool {
		return func(d Action) bool { return d.Verb == "created" && d.Kind == kind }
	}
	chosen := []int{0}
	for _, i := range []int{
		s.last(by(You)), s.last(by(Manager)), s.first(by(Manager)),
		s.last(func(d Action) bool { return strings.HasPrefix(d.Kind, available) }),
		s.last(func(d Action) bool { return d.Verb == "counted" || podStarted(d) }),
		s.first(made("Deployment")), s.first(made("ReplicaSet")), s.first(made("Pod")),
	} {
		if i >= 0 && !slices.Contains(chosen, i) && len(chosen) < lineActions {
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen)
	var actions []Action
	for _, i := range chosen {
		actions = append(actions, s.Actions[i])
	}
	return actions
}

func (s *Timeline) first(is func(Action) bool) int { return slices.IndexFunc(s.Actions, is) }

func (s *Timeline) last(is func(Action) bool) int {
	for i := len(s.Actions) - 1; i >= 0; i-- {
		if is(s.Actions[i]) {
			return i
		}
	}
	return -1
}

// Print writes the whole timeline, one action in a line.
func (s *Timeline) Print(w io.Writer) {
	actions := s.Actions
	if !s.Ended.IsZero() {
		actions = append(slices.Clone(actions), Action{At: s.Ended, Actor: "the check", Verb: "ended", Count: 1})
	}
	Print(w, s.Begun, actions)
	if s.Omitted > 0 {
		fmt.Fprintf(w, "   %s\n", faint("%d more changes came so fast that they were only counted", s.Omitted))
	}
}
