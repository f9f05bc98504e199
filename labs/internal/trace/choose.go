package trace

import (
	"slices"
	"strings"
)

// About is the timeline of a check that words are about: the one whose Memcached they name, else the first;
// nil when the check made none.
func About(timelines []*Timeline, check, words string) *Timeline {
	own := slices.DeleteFunc(slices.Clone(timelines), func(s *Timeline) bool { return s.Check != check })
	for _, s := range own {
		if strings.Contains(words, s.Of.Name) {
			return s
		}
	}
	if len(own) > 0 {
		return own[0]
	}
	return nil
}

// Furthest is the timeline of the first of the checks that got as far as any: to an available Memcached if
// one did, else to running Pods. It is nil when none of the checks made a Memcached.
func Furthest(timelines []*Timeline, checks []string) *Timeline {
	var best *Timeline
	for _, check := range checks {
		if s := About(timelines, check, ""); s != nil && (best == nil || s.Reached() > best.Reached()) {
			best = s
		}
	}
	return best
}
