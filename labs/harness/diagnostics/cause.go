package diagnostics

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// rule is a reason why an object is not as it should be: a cause, and what was seen of it. "" is none.
type rule func() (cause, seen string)

// Cause gives a finding about an object another cause when the snapshot explains it better. Otherwise it returns f.
func (s *Snapshot) Cause(f *finding.Finding) *finding.Finding {
	var rules []rule
	switch f.Cause {
	case finding.CauseOther, finding.CauseMachine, suite.CauseBlocked, suite.CauseManagerExited, suite.CauseManagerSilent:
		return f // it says nothing about the object
	}
	switch {
	case s.Resource == "deployments" && s.Missing:
		rules = []rule{s.forbidden, s.rejectedCreation, s.panicked, s.elsewhere}
	case s.Resource == "deployments" || s.Resource == "services":
		rules = []rule{s.rejected("rejected"), s.panicked}
	case s.Resource == "memcacheds":
		rules = []rule{s.rejected("status-rejected"), s.panicked, s.forbidden}
	case s.Resource == "events" && s.Missing:
		rules = []rule{s.rejectedCreation, s.onAnotherObject, s.panicked, s.unsupportedType}
	}
	for _, explain := range rules {
		if cause, seen := explain(); cause != "" {
			return &finding.Finding{Cause: cause, Expected: f.Expected, Seen: f.Seen + "; " + seen, Fields: f.Fields}
		}
	}
	return f
}

// forbidden finds a request that the manager had no right to. An object that is there lacks only what was to be written to it.
func (s *Snapshot) forbidden() (cause, seen string) {
	for _, r := range s.Denied {
		if s.Missing || r.Mutating() && r.Namespace == s.Of.Namespace && (r.Name == "" || r.Name == s.Of.Name) {
			return "forbidden", "the API server refused the manager: " + r.Kind() + ": " + r.Reason(s.User)
		}
	}
	return "", ""
}

// rejectedCreation finds an attempt to make the object that is missing.
func (s *Snapshot) rejectedCreation() (cause, seen string) {
	for _, r := range s.Requests {
		if r.Resource == s.Resource && r.Namespace == s.Of.Namespace && r.Refused() && (r.Verb == "create" || invalid(r)) {
			return "rejected", "the API server did not take the one that was sent: " + r.String()
		}
	}
	return "", ""
}

// rejected finds the last write to the object, if the API server refused it for what is in it. If such refusals have ended the wait, a
// write that was taken since then does not matter.
func (s *Snapshot) rejected(cause string) rule {
	return func() (string, string) {
		for _, r := range slices.Backward(s.Requests) {
			switch {
			case !r.Mutating() || r.Resource != s.Resource || r.Namespace != s.Of.Namespace || r.Name != "" && r.Name != s.Of.Name:
			case invalid(r):
				return cause, "the API server did not take what was sent: " + r.String()
			case !s.Rejected:
				return "", ""
			}
		}
		return "", ""
	}
}

// panicked finds a panic that was logged with the object's name, which was drawn for this check.
func (s *Snapshot) panicked() (cause, seen string) {
	if p := recovered(s.Log, s.Workspace, LogFilter{s.Of.Name}.names); p != nil {
		return suite.CausePanicked, "your code panicked: " + p.Message
	}
	return "", ""
}

// elsewhere finds a Deployment that was probably meant for the Memcached: one that no other Memcached has the name of.
func (s *Snapshot) elsewhere() (cause, seen string) {
	for _, d := range s.deployments.Items {
		meant, there := false, "there is a Deployment "+d.Namespace+"/"+d.Name
		for _, m := range s.memcacheds.Items {
			meant = meant || m.GetNamespace() == d.Namespace && m.GetName() == d.Name
		}
		switch {
		case meant:
		case d.Namespace == s.Of.Namespace && d.Name != s.Of.Name:
			return "wrong-name", there
		case d.Namespace != s.Of.Namespace && d.Name == s.Of.Name:
			return "wrong-namespace", there
		}
	}
	return "", ""
}

// builtIn are the controllers of Kubernetes that tell about Deployments and Pods.
var builtIn = []string{"deployment-controller", "replicaset-controller", "default-scheduler", "kubelet", "resource-quota-controller"}

// onAnotherObject finds an event of the manager's that is not about a Memcached.
func (s *Snapshot) onAnotherObject() (cause, seen string) {
	for _, e := range s.events.Items {
		if by := cmp.Or(e.ReportingController, e.DeprecatedSource.Component); e.Regarding.Kind != suite.Kind && by != "" && !slices.Contains(builtIn, by) {
			return "wrong-object", "there is an event " + e.Reason + " on " + e.Regarding.Kind + " " + e.Regarding.Name
		}
	}
	return "", ""
}

// unsupportedType finds a type of event that does not exist: it never gets as far as the API server. Both recorders say so alike.
func (s *Snapshot) unsupportedType() (cause, seen string) {
	if lines := lastEntries(s.Log, 1, LogFilter{"Unsupported event type"}.names); len(lines) > 0 {
		return "unsupported-type", "the recorder refused one: " + lines[0]
	}
	return "", ""
}

// refused are the requests that the API server answered with an error, the most recent first. What is usual is left out: to ask for
// something that is not there, to watch from a time that is long gone, and conflicts, which the log tells. So are requests in other
// checks' namespaces; a manager that writes into a namespace which belongs to no check may have meant one of this check's.
func (s *Snapshot) refused() (all []apiproxy.Request) {
	for _, r := range slices.Backward(s.Requests) {
		usual := r.Verb == "get" && r.Status == http.StatusNotFound || r.Status == http.StatusGone || r.Status == http.StatusConflict
		if r.Refused() && !usual && (s.owns(r.Namespace) || !checkNamespaces.MatchString(r.Namespace)) {
			all = append(all, r)
		}
	}
	return all
}

// writes are the kinds of change that the manager asked for in the check's namespaces, in one line.
func (s *Snapshot) writes() string {
	var kinds groups
	for _, r := range s.Requests {
		if r.Mutating() && s.owns(r.Namespace) {
			kinds.add(r.Kind(), "", 1)
		}
	}
	if len(kinds) == 0 {
		return "nothing in the namespace of this check"
	}
	return strings.Join(kinds.lines(), ", ")
}

// invalid says whether the API server refused a request for what is in it. A conflict is no such thing.
func invalid(r apiproxy.Request) bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity
}

// mentions says whether a text has a refusal: in the API server's words, which a logger may quote or cut, or in the harness's.
func mentions(text string, r apiproxy.Request) bool {
	const enough = 80 // the rest differs: it names the namespace
	message := r.Message[:min(len(r.Message), enough)]
	return message != "" && strings.Contains(strings.ReplaceAll(text, `\`, ""), message) || strings.Contains(text, r.Kind()+":")
}
