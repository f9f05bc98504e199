package harness

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
)

// The causes that a wait gives when something else explains what it was waiting for.
const (
	// CausePanicked is the cause when the manager's code panicked over the object. controller-runtime
	// turns that into an error, so that the manager goes on running.
	CausePanicked = "panicked"
	// causeRejected is the cause when the API server did not take what the manager sent.
	causeRejected = "rejected"
	// causeStatusRejected is the same for the Memcached's status.
	causeStatusRejected = "status-rejected"
)

// The kinds of objects that a manager writes about a Memcached.
var (
	deployments = apiproxy.Request{Group: "apps", Resource: "deployments"}
	memcacheds  = apiproxy.Request{Group: Group, Resource: "memcacheds"}
)

// why looks for what explains that the Deployment did not become what was waited for.
func (m Memcached) why(ctx context.Context, err error) error {
	if err == nil || !IsAnswer(err) {
		return err
	}
	f := finding.Of(err)
	if f.Cause == CauseNoDeployment {
		return m.whyNoDeployment(ctx, f)
	}
	return m.whyNotTaken(m.whyPanicked(f), causeRejected, deployments)
}

// whyStatus looks for what explains that the Memcached's status did not become what was waited for.
func (m Memcached) whyStatus(err error) error {
	if err == nil || !IsAnswer(err) {
		return err
	}
	f := m.whyPanicked(finding.Of(err))
	return m.whyNotTaken(f, causeStatusRejected, memcacheds)
}

// IsAnswer says whether err is what a check found out about the objects that it waited for. It is none when the manager
// ended, another check had failed, or the machine could not do its part.
func IsAnswer(err error) bool {
	switch finding.Of(err).Cause {
	case finding.CauseOther, finding.CauseMachine, CauseBlocked, CauseManagerExited, CauseManagerSilent:
		return false
	}
	return true
}

// whyNotTaken gives f another cause when the last thing that the manager wrote to this kind of object was
// not taken.
func (m Memcached) whyNotTaken(f *finding.Finding, cause string, kind apiproxy.Request) error {
	last := ofKind(m.Writes(0), kind)
	if refusedLast(last) == 0 {
		return f
	}
	return &finding.Finding{Cause: cause, Expected: f.Expected, Seen: f.Seen + "; the API server did not take what was sent last: " + last[len(last)-1].String(), Fields: f.Fields}
}

// enoughRefusals is how often in a row the API server may refuse what is in a manager's writes before a wait ends.
// A right operator never sends such a thing; one that does goes on with the same.
const enoughRefusals = 5

// unlessRefused makes cond end a wait as soon as the API server keeps refusing what the manager writes to this kind
// of object: the next attempt will not be another one.
func (m Memcached) unlessRefused(kind apiproxy.Request, cond func() error) func() error {
	next, inRow := -1, 0
	return func() error {
		err := cond()
		if err == nil {
			return nil
		}
		if next < 0 {
			next = Now()
			return err
		}
		requests := Requests(next)
		if n := len(requests); n > 0 {
			next = requests[n-1].Index + 1
		}
		writes := ofKind(m.among(requests), kind)
		if n := refusedLast(writes); n < len(writes) {
			inRow = n
		} else {
			inRow += n
		}
		if inRow >= enoughRefusals {
			return Stop(err)
		}
		return err
	}
}

// ofKind are those of the requests that are about a resource, whichever of its subresources they went to.
func ofKind(requests []apiproxy.Request, kind apiproxy.Request) []apiproxy.Request {
	return slices.DeleteFunc(slices.Clone(requests), func(r apiproxy.Request) bool {
		return r.Group != kind.Group || r.Resource != kind.Resource
	})
}

// refusedLast counts the requests at the end that the API server refused for what is in them. A conflict is no such
// thing: it is repeated, and then taken.
func refusedLast(requests []apiproxy.Request) int {
	n := 0
	for _, r := range slices.Backward(requests) {
		if r.Status != http.StatusBadRequest && r.Status != http.StatusUnprocessableEntity {
			break
		}
		n++
	}
	return n
}

// whyPanicked gives f another cause when the manager logged a panic together with the Memcached's name,
// which was drawn for this check.
func (m Memcached) whyPanicked(f *finding.Finding) *finding.Finding {
	if text := panicIn(LogLines(m.Name)); text != "" {
		return finding.New(CausePanicked, f.Expected, "%s; your code panicked: %s", f.Seen, text)
	}
	return f
}

// panicText finds what a Go program says when it panics, in a line of a log in whatever format.
var panicText = regexp.MustCompile(`panic: ([^"\n]+)`)

// panicIn is what the first panic in the lines says, "" when there is none.
func panicIn(lines []string) string {
	for _, line := range lines {
		if match := panicText.FindStringSubmatch(line); match != nil {
			return strings.TrimSuffix(strings.TrimSpace(match[1]), " [recovered]")
		}
	}
	return ""
}

// looksInto are the namespaces in which the manager looks for Memcacheds; none when it looks into all of them, or
// for none.
func looksInto(requests []apiproxy.Request) []string {
	var namespaces []string
	for _, r := range requests {
		if r.Group != Group || r.Verb != "list" && r.Verb != "watch" {
			continue
		}
		if r.Namespace == "" {
			return nil
		}
		if !slices.Contains(namespaces, r.Namespace) {
			namespaces = append(namespaces, r.Namespace)
		}
	}
	return namespaces
}
