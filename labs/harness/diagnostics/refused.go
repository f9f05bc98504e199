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
	apiproxy.Request
	times int
}

// refused are the requests that the API server answered with an error, each kind once, the most recent
// first. What is usual is left out: to ask for something that is not there, to watch from a time that is
// long gone, and a conflict now and then.
func (s *Snapshot) refused() []refusal {
	var all []refusal
	for _, r := range slices.Backward(s.Requests) {
		if !s.refuses(r) || r.Verb == "get" && r.Status == http.StatusNotFound || r.Status == http.StatusGone {
			continue
		}
		if i := slices.IndexFunc(all, func(known refusal) bool { return sameKind(known.Request, r) }); i >= 0 {
			all[i].times++
			continue
		}
		all = append(all, refusal{Request: r, times: 1})
	}
	return slices.DeleteFunc(all, func(r refusal) bool {
		return r.Status == http.StatusConflict && r.times <= usualConflicts
	})
}

// refuses says whether the answer to a request is an error that may be this check's. A manager that writes
// into a namespace which belongs to no check may have meant one of this check's.
func (s *Snapshot) refuses(r apiproxy.Request) bool {
	own := slices.Contains(s.Namespaces, r.Namespace) || s.CheckNamespaces == nil || !s.CheckNamespaces.MatchString(r.Namespace)
	return r.Refused() && own
}

func sameKind(a, b apiproxy.Request) bool {
	return a.Verb == b.Verb && a.Group == b.Group && a.Resource == b.Resource && a.Subresource == b.Subresource && a.Status == b.Status
}

func (s *Snapshot) refusedLines(refused []refusal) []string {
	var lines []string
	for _, r := range refused {
		lines = append(lines, fmt.Sprintf("%s%s: %d, %s", r.Kind(), times(r.times), r.Status, r.Reason(s.User)))
	}
	return lines
}

// writes are the kinds of change that the manager asked for in the check's namespaces, in one line.
func (s *Snapshot) writes() []string {
	counts := map[string]int{}
	var order []string
	for _, r := range s.Requests {
		if !r.Mutating() || !slices.Contains(s.Namespaces, r.Namespace) {
			continue
		}
		what := r.Kind()
		if counts[what]++; counts[what] == 1 {
			order = append(order, what)
		}
	}
	if len(order) == 0 {
		return []string{"nothing in the namespace of this check"}
	}
	for i, what := range order {
		order[i] = what + times(counts[what])
	}
	return []string{strings.Join(order, ", ")}
}

// saidIn says whether a text has the refusal: the API server's words for it, or ours.
func (r refusal) saidIn(text string) bool {
	const enough = 80 // the rest differs: it names the namespace
	message, text := []rune(unquoted(r.Message)), unquoted(text)
	quoted := len(message) > 0 && strings.Contains(text, string(message[:min(len(message), enough)]))
	return quoted || strings.Contains(text, r.Kind()+":")
}

// unquoted is text without what a logger does to quotation marks and line breaks.
func unquoted(text string) string {
	return strings.NewReplacer(`\`, "", `"`, "").Replace(strings.Join(strings.Fields(text), " "))
}
