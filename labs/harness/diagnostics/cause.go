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

// Cause returns f with another cause if the snapshot explains it better. Otherwise it returns f.
func (s *Snapshot) Cause(f *finding.Finding) *finding.Finding {
	var rules []func() (cause, seen string) // "" is none
	switch f.Cause {
	case finding.CauseOther, finding.CauseMachine, suite.CauseBlocked, suite.CauseManagerExited, suite.CauseManagerSilent:
		return f // it is not about the object
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

// forbidden finds a request that the manager had no right to. If the object exists, only a write to it counts.
func (s *Snapshot) forbidden() (cause, seen string) {
	for _, r := range s.Denied {
		if s.Missing || r.Mutating() && r.Namespace == s.Of.Namespace && (r.Name == "" || r.Name == s.Of.Name) {
			return "forbidden", "the API server refused the manager: " + r.Kind() + ": " + r.Reason(s.User)
		}
	}
	return "", ""
}

// rejected finds a write that the API server refused for its content: a creation if the object is missing, or else the last write to
// it. If such refusals have ended the wait, a later write that succeeded does not matter.
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

// panicked finds a panic that was logged with the object's name. The name is random, so no other check has it.
func (s *Snapshot) panicked() (cause, seen string) {
	if p := recovered(s.Log, s.Workspace, LogFilter{s.Of.Name}.names); p != "" {
		return suite.CausePanicked, "your code panicked: " + p
	}
	return "", ""
}

// elsewhere finds a Deployment that was probably meant for the Memcached: no other Memcached has its namespace and name.
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

// builtIn are the components of Kubernetes that write events about Deployments and Pods.
var builtIn = []string{"deployment-controller", "replicaset-controller", "default-scheduler", "kubelet", "resource-quota-controller"}

// onAnotherObject finds an event from the manager that is not about a Memcached.
func (s *Snapshot) onAnotherObject() (cause, seen string) {
	for _, e := range s.events.Items {
		by := cmp.Or(e.ReportingController, e.DeprecatedSource.Component)
		if e.Regarding.Kind != suite.Kind && by != "" && !slices.Contains(builtIn, by) {
			return "wrong-object", "there is an event " + e.Reason + " on " + e.Regarding.Kind + " " + e.Regarding.Name
		}
	}
	return "", ""
}

// unsupportedType finds an event with an unknown type in the log. Both recorders log such an event with these words, and never send it.
func (s *Snapshot) unsupportedType() (cause, seen string) {
	if lines := lastEntries(s.Log, 1, LogFilter{"Unsupported event type"}.names); len(lines) > 0 {
		return "unsupported-type", "the recorder refused one: " + lines[0]
	}
	return "", ""
}

// refused are the requests that the API server answered with an error, the most recent first. It leaves out usual errors: a get of an
// object that does not exist, a watch from an old version, and conflicts, which are in the log. It also leaves out requests in the
// namespaces of other checks. A request in any other namespace counts: the manager may have meant one of this check's.
func (s *Snapshot) refused() (all []apiproxy.Request) {
	for _, r := range slices.Backward(s.Requests) {
		usual := r.Verb == "get" && r.Status == http.StatusNotFound || r.Status == http.StatusGone || r.Status == http.StatusConflict
		if r.Refused() && !usual && (s.owns(r.Namespace) || !checkNamespaces.MatchString(r.Namespace)) {
			all = append(all, r)
		}
	}
	return all
}

// writes are the kinds of the manager's mutating requests in the check's namespaces, in one line.
func (s *Snapshot) writes() string {
	var kinds groups
	for _, r := range s.Requests {
		if r.Mutating() && s.owns(r.Namespace) {
			kinds.add(r.Kind(), "", 1)
		}
	}
	return cmp.Or(strings.Join(kinds.lines(), ", "), "nothing in the namespace of this check")
}
