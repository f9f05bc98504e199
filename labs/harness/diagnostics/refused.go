package diagnostics

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// usualConflicts is how many conflicts of one kind are nobody's fault: a cache is a moment behind.
const usualConflicts = 2

// refusal is one kind of request that the API server refused.
type refusal struct {
	apiproxy.Request // the last one
	times            int
}

// refused are the requests that the API server answered with an error, each kind once, the most recent first. What is usual is
// left out: to ask for something that is not there, to watch from a time that is long gone, and a conflict now and then.
func (s *Snapshot) refused() []refusal {
	var all []refusal
	for _, r := range slices.Backward(s.Requests) {
		if !s.refuses(r) || r.Verb == "get" && r.Status == http.StatusNotFound || r.Status == http.StatusGone {
			continue
		}
		i := slices.IndexFunc(all, func(known refusal) bool { return known.Status == r.Status && known.Kind() == r.Kind() })
		if i < 0 {
			i, all = len(all), append(all, refusal{Request: r})
		}
		all[i].times++
	}
	return slices.DeleteFunc(all, func(r refusal) bool { return r.Status == http.StatusConflict && r.times <= usualConflicts })
}

// refuses says whether the answer to a request is an error that may be this check's. A manager that writes
// into a namespace which belongs to no check may have meant one of this check's.
func (s *Snapshot) refuses(r apiproxy.Request) bool {
	return r.Refused() && (slices.Contains(s.Namespaces, r.Namespace) || s.CheckNamespaces == nil || !s.CheckNamespaces.MatchString(r.Namespace))
}

// refusedLines are those of the refusals that text does not have.
func (s *Snapshot) refusedLines(refused []refusal, text string) []string {
	var lines []string
	for _, r := range refused {
		if !r.saidIn(text) {
			lines = append(lines, fmt.Sprintf("%s%s: %d, %s", r.Kind(), times(r.times), r.Status, r.Reason(s.User)))
		}
	}
	return lines
}

// writes are the kinds of change that the manager asked for in the check's namespaces, in one line.
func (s *Snapshot) writes() []string {
	var kinds counts
	for _, r := range s.Requests {
		if r.Mutating() && slices.Contains(s.Namespaces, r.Namespace) {
			kinds.add(r.Kind(), 1)
		}
	}
	if len(kinds.order) == 0 {
		return []string{"nothing in the namespace of this check"}
	}
	return []string{strings.Join(kinds.lines(), ", ")}
}

// saidIn says whether a text has the refusal: the API server's words for it, or ours.
func (r refusal) saidIn(text string) bool {
	const enough = 80 // the rest differs: it names the namespace
	message, text := []rune(unquoted(r.Message)), unquoted(text)
	return len(message) > 0 && strings.Contains(text, string(message[:min(len(message), enough)])) || strings.Contains(text, r.Kind()+":")
}

// unquoted is text without what a logger does to quotation marks and line breaks.
func unquoted(text string) string {
	return strings.NewReplacer(`\`, "", `"`, "").Replace(strings.Join(strings.Fields(text), " "))
}
