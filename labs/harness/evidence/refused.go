package evidence

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/recorder"
)

// usualConflicts is how many conflicts of one kind are nobody's fault: a cache is a moment behind.
const usualConflicts = 2

// refusal is one kind of request that the API server refused.
type refusal struct {
	recorder.Request
	times int
}

// refused are the requests that the API server answered with an error, each kind once, the most recent
// first. What is usual is left out: to ask for something that is not there, to watch from a time that is
// long gone, and a conflict now and then.
func (s *Sighting) refused() []refusal {
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
func (s *Sighting) refuses(r recorder.Request) bool {
	own := slices.Contains(s.Namespaces, r.Namespace) || s.Strangers == nil || !s.Strangers.MatchString(r.Namespace)
	return r.Status >= http.StatusBadRequest && own
}

func sameKind(a, b recorder.Request) bool {
	return a.Verb == b.Verb && a.Group == b.Group && a.Resource == b.Resource && a.Subresource == b.Subresource && a.Status == b.Status
}

func refusedLines(refused []refusal) []string {
	var lines []string
	for _, r := range refused {
		lines = append(lines, fmt.Sprintf("%s%s: %d, %s", r.what(), times(r.times), r.Status, r.why()))
	}
	return lines
}

// what was asked for, without the name: there may have been many.
func (r refusal) what() string {
	text := r.Verb + " " + r.Resource
	if r.Group != "" {
		text += "." + r.Group
	}
	if r.Subresource != "" {
		text += "/" + r.Subresource
	}
	switch {
	case strings.HasPrefix(r.Resource, "/"):
		return text
	case r.Namespace == "":
		return text + " in all namespaces"
	}
	return text
}

// why it was refused. The API server's words for a missing right are twice as many as are needed.
func (r refusal) why() string {
	switch {
	case r.Status == http.StatusForbidden && strings.Contains(r.Message, "cannot "+r.Verb+" resource"):
		return "the manager has no right to"
	case r.Message == "":
		return http.StatusText(r.Status)
	}
	return r.Message
}

// saysTheSame says whether a line of a log quotes the refusal.
func (r refusal) saysTheSame(line string) bool {
	const enough = 80 // the rest differs: it names the namespace
	message := []rune(unquoted(r.Message))
	return len(message) > 0 && strings.Contains(unquoted(line), string(message[:min(len(message), enough)]))
}

// unquoted is text without what a logger does to quotation marks and line breaks.
func unquoted(text string) string {
	return strings.NewReplacer(`\`, "", `"`, "").Replace(strings.Join(strings.Fields(text), " "))
}
