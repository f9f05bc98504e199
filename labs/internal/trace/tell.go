package trace

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	// lineDeeds is how many deeds one line tells.
	lineDeeds = 6
	// lineDetail is how much of a detail one line tells.
	lineDetail = 40
	// patience is how long a manager may be silent before that is worth a word.
	patience = time.Second
)

// Line tells the story in one line: what began it, what each side did, and how it came out. Of a check
// that failed it also tells when the manager had no answer to what was done last.
func (s *Story) Line(failed bool) string {
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
	if since := s.unanswered(); failed && since > patience {
		parts = append(parts, fmt.Sprintf("then nothing from your manager for %.1f s", since.Seconds()))
	}
	return strings.Join(parts, " · ")
}

// unanswered is how long the manager did nothing between what you did last and the end of the check; 0
// when it did something, or the end was not seen.
func (s *Story) unanswered() time.Duration {
	did := s.last(by(You))
	if s.Ended.IsZero() || did < 0 || s.last(by(Manager)) > did {
		return 0
	}
	return s.Ended.Sub(s.Deeds[did].At)
}

func by(actor string) func(Deed) bool { return func(d Deed) bool { return d.Actor == actor } }

// short is a deed without what a reader of the line knows: the name of the Memcached and of what is
// named after it, and the words of a condition.
func (s *Story) short(d Deed) string {
	switch {
	case strings.HasPrefix(d.Kind, available):
		return d.Kind
	case d.Name != "" && d.Count == 1 && (d.Name == s.Of.Name || strings.HasPrefix(d.Name, s.Of.Name+"-") && d.Kind != "Deployment"):
		d.Kind, d.Name = "the "+strings.TrimPrefix(d.Kind, "the "), ""
	}
	d.Detail = cut(d.Detail, lineDetail)
	return d.String()
}

// milestones are the deeds that a line tells, in the order in which they happened.
func (s *Story) milestones() []Deed {
	made := func(kind string) func(Deed) bool {
		return func(d Deed) bool { return d.Verb == "created" && d.Kind == kind }
	}
	chosen := []int{0}
	for _, i := range []int{
		s.last(by(You)), s.last(by(Manager)), s.first(by(Manager)),
		s.last(func(d Deed) bool { return strings.HasPrefix(d.Kind, available) }),
		s.last(func(d Deed) bool { return d.Verb == "counted" || podStarted(d) }),
		s.first(made("Deployment")), s.first(made("ReplicaSet")), s.first(made("Pod")),
	} {
		if i >= 0 && !slices.Contains(chosen, i) && len(chosen) < lineDeeds {
			chosen = append(chosen, i)
		}
	}
	slices.Sort(chosen)
	var deeds []Deed
	for _, i := range chosen {
		deeds = append(deeds, s.Deeds[i])
	}
	return deeds
}

func (s *Story) first(is func(Deed) bool) int { return slices.IndexFunc(s.Deeds, is) }

func (s *Story) last(is func(Deed) bool) int {
	for i := len(s.Deeds) - 1; i >= 0; i-- {
		if is(s.Deeds[i]) {
			return i
		}
	}
	return -1
}

// Print writes the whole story, one deed in a line.
func (s *Story) Print(w io.Writer) {
	deeds := s.Deeds
	if !s.Ended.IsZero() {
		deeds = append(slices.Clone(deeds), Deed{At: s.Ended, Actor: "the check", Verb: "ended", Count: 1})
	}
	Print(w, s.Begun, deeds)
	if s.Omitted > 0 {
		fmt.Fprintf(w, "   %s\n", faint("%d more changes came so fast that they were only counted", s.Omitted))
	}
}
