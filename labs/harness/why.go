package harness

import (
	"context"
	"net/http"
	"regexp"
	"strings"

	"github.com/example/operator-lab/labs/harness/recorder"
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

// why looks for what explains that the Deployment did not become what was waited for.
func (m Memcached) why(ctx context.Context, err error) error {
	if err == nil || !explicable(err) {
		return err
	}
	f := finding.Of(err)
	if f.Cause == causeNoDeployment {
		return m.whyNoDeployment(ctx, f)
	}
	return m.whyNotTaken(ctx, m.whyPanicked(ctx, f), causeRejected, recorder.Request{Group: "apps", Resource: "deployments"})
}

// whyStatus looks for what explains that the Memcached's status did not become what was waited for.
func (m Memcached) whyStatus(ctx context.Context, err error) error {
	if err == nil || !explicable(err) {
		return err
	}
	f := m.whyPanicked(ctx, finding.Of(err))
	return m.whyNotTaken(ctx, f, causeStatusRejected, recorder.Request{Group: Group, Resource: "memcacheds"})
}

// explicable says whether err is about the object that was waited for, and not about the wait itself.
func explicable(err error) bool {
	switch finding.Of(err).Cause {
	case finding.CauseOther, CauseBlocked, CauseManagerExited, CauseManagerSilent:
		return false
	}
	return true
}

// whyNotTaken gives f another cause when the last thing that the manager wrote to this kind of object was
// not taken.
func (m Memcached) whyNotTaken(ctx context.Context, f *finding.Finding, cause string, kind recorder.Request) error {
	writes, err := m.Writes(ctx, 0)
	if err != nil {
		return err
	}
	last := lastOf(writes, kind)
	if !invalid(last) {
		return f
	}
	return &finding.Finding{Cause: cause, Expected: f.Expected, Seen: f.Seen + "; the API server did not take what was sent last: " + last.String(), Fields: f.Fields}
}

// lastOf is the last of the requests about a resource, whichever of its subresources they went to.
func lastOf(requests []recorder.Request, kind recorder.Request) recorder.Request {
	var last recorder.Request
	for _, r := range requests {
		if r.Group == kind.Group && r.Resource == kind.Resource {
			last = r
		}
	}
	return last
}

// invalid says whether the API server refused the request for what is in it. A conflict is no such thing: it is
// repeated, and then taken.
func invalid(r recorder.Request) bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity
}

// whyPanicked gives f another cause when the manager logged a panic together with the Memcached's name,
// which was drawn for this check.
func (m Memcached) whyPanicked(ctx context.Context, f *finding.Finding) *finding.Finding {
	lines, err := LogLines(ctx, m.Name)
	if err != nil {
		return f
	}
	if text := panicIn(lines); text != "" {
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
