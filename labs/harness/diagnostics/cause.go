package diagnostics

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Cause gives a finding about an object another cause when the snapshot explains it better. Otherwise it returns f.
func (s *Snapshot) Cause(f *finding.Finding) *finding.Finding {
	var rules []func() (cause, seen string) // "" is none
	switch f.Cause {
	case finding.CauseOther, finding.CauseMachine, suite.CauseBlocked, suite.CauseManagerExited, suite.CauseManagerSilent:
		return f // it says nothing about the object
	}
	switch {
	case s.Resource == "deployments" && s.Missing:
		rules = append(rules, s.forbidden, s.rejected, s.panicked, s.elsewhere)
	case s.Resource == "deployments" || s.Resource == "services":
		rules = append(rules, s.rejected, s.panicked)
	case s.Resource == "memcacheds":
		rules = append(rules, s.rejected, s.panicked, s.forbidden)
	case s.Resource == "events" && s.Missing:
		rules = append(rules, s.rejected, s.onAnotherObject, s.panicked, s.unsupportedType)
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

// rejected finds an attempt to make an object that is missing, or the last write to one that is there, if the API server refused it for
// what is in it. If such refusals have ended the wait, a write that was taken since then does not matter.
func (s *Snapshot) rejected() (cause, seen string) {
	for _, r := range slices.Backward(s.Requests) {
		switch {
		case !r.Mutating() || r.Resource != s.Resource || r.Namespace != s.Of.Namespace || !s.Missing && r.Name != "" && r.Name != s.Of.Name:
		case r.Status == http.StatusBadRequest || r.Status == http.StatusUnprocessableEntity || s.Missing && r.Refused() && r.Verb == "create":
			cause = map[bool]string{true: "status-rejected", false: "rejected"}[s.Resource == "memcacheds"]
			return cause, "the API server did not take what was sent: " + r.String()
		case !s.Missing && !s.Rejected:
			return "", ""
		}
	}
	return "", ""
}

// panicked finds a panic that was logged with the object's name, which was drawn for this check.
func (s *Snapshot) panicked() (cause, seen string) {
	if p := recovered(s.Log, s.Workspace, LogFilter{s.Of.Name}.names); p != "" {
		return suite.CausePanicked, "your code panicked: " + p
	}
	return "", ""
}

// elsewhere finds a Deployment that was probably meant for the Memcached: one that no other Memcached has the name of.
func (s *Snapshot) elsewhere() (cause, seen string) {
	for _, d := range s.deployments.Items {
		there := "there is a Deployment " + d.Namespace + "/" + d.Name
		switch {
		case slices.ContainsFunc(s.memcacheds.Items, func(m unstructured.Unstructured) bool {
			return m.GetNamespace() == d.Namespace && m.GetName() == d.Name
		}):
		case d.Namespace == s.Of.Namespace && d.Name != s.Of.Name:
			return "wrong-name", there
		case d.Namespace != s.Of.Namespace && d.Name == s.Of.Name:
			return "wrong-namespace", there
		}
	}
	return "", ""
}

// builtIn tell about Deployments and Pods in every cluster.
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
	return cmp.Or(strings.Join(kinds.lines(), ", "), "nothing in the namespace of this check")
}
