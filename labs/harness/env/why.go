package env

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/suite"
)

// The causes of a failure that something else explains than what was looked at.
const (
	// causeRejected is the cause when the API server did not take what the manager sent.
	causeRejected = "rejected"
	// causeStatusRejected is the same for the Memcached's status.
	causeStatusRejected = "status-rejected"
)

// explain looks for what explains a finding of a matcher, in what can be seen from outside.
func explain(ctx context.Context, u Failure, f *finding.Finding) *finding.Finding {
	ctx, cancel := context.WithTimeout(ctx, diagnosticsTimeout)
	defer cancel()
	m := Memcached{Namespace: u.Of.Namespace, Name: u.Of.Name}
	switch {
	case !isAnswer(f):
		return f
	case u.Resource == Deployments && u.Missing:
		return m.whyNoDeployment(ctx, f)
	case u.Resource == Deployments || u.Resource == Services:
		return m.whyNotTaken(m.whyPanicked(f), causeRejected, u)
	case u.Resource == Memcacheds:
		if why := m.whyNotTaken(m.whyPanicked(f), causeStatusRejected, u); why != f {
			return why
		}
		return m.whyForbidden(ctx, f)
	case u.Resource == Events && u.Missing:
		return whyNoEvent(ctx, running().created(), f)
	}
	return f
}

// isAnswer says whether err is what a check found out about the objects that it waited for. It is none when the manager
// ended, another check had failed, or the machine could not do its part.
func isAnswer(err error) bool {
	switch finding.Of(err).Cause {
	case finding.CauseOther, finding.CauseMachine, suite.CauseBlocked, suite.CauseManagerExited, suite.CauseManagerSilent:
		return false
	}
	return true
}

// whyNotTaken gives f another cause when the API server did not take what the manager wrote to the resource.
func (m Memcached) whyNotTaken(f *finding.Finding, cause string, u Failure) *finding.Finding {
	w := notTaken(toResource(m.Writes(0), u.Resource), u.Rejected)
	if w == nil {
		return f
	}
	seen := f.Seen + "; the API server did not take what was sent: " + w.String()
	return &finding.Finding{Cause: cause, Expected: f.Expected, Seen: seen, Fields: f.Fields}
}

// whyForbidden says that the manager had no right to write something of the Memcached's name.
func (m Memcached) whyForbidden(ctx context.Context, f *finding.Finding) *finding.Finding {
	denied, err := Refused(ctx, 0)
	if err != nil {
		return f // only one more clue
	}
	writes := writesTo(denied, m.Key())
	if len(writes) == 0 {
		return f
	}
	seen := f.Seen + "; the API server refused the manager: " + Refusal(writes[0])
	return &finding.Finding{Cause: "forbidden", Expected: f.Expected, Seen: seen, Fields: f.Fields}
}

// notTaken is the last of the writes, if the API server refused it for what is in it. rejected says that such refusals have
// ended a wait: what was taken since then does not matter.
func notTaken(writes []apiproxy.Request, rejected bool) *apiproxy.Request {
	for _, w := range slices.Backward(writes) {
		switch {
		case invalid(w):
			return &w
		case !rejected:
			return nil
		}
	}
	return nil
}

// whyPanicked gives f another cause when the manager logged a panic together with the Memcached's name,
// which was drawn for this check.
func (m Memcached) whyPanicked(f *finding.Finding) *finding.Finding {
	if text := panicIn(LogLines(m.Name)); text != "" {
		return finding.New(suite.CausePanicked, f.Expected, "%s; your code panicked: %s", f.Seen, text)
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

// watchedNamespaces are the namespaces in which the manager looks for Memcacheds; none when it looks into all of them, or
// for none.
func watchedNamespaces(requests []apiproxy.Request) []string {
	var namespaces []string
	for _, r := range requests {
		if r.Group != suite.Group || r.Verb != "list" && r.Verb != "watch" {
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

// whyNoDeployment looks for the reason in what can be seen from outside, the most telling first. When
// it finds none it returns the finding as it is.
func (m Memcached) whyNoDeployment(ctx context.Context, f *finding.Finding) *finding.Finding {
	denied, err := Refused(ctx, 0)
	if err != nil {
		return f // only one more clue
	}
	if len(denied) > 0 {
		return finding.New("forbidden", f.Expected, "none; the API server refused the manager: %s", Refusal(denied[0]))
	}
	sent := requests(0)
	for _, r := range sent {
		if r.Resource == "deployments" && r.Verb == "create" && r.Namespace == m.Namespace && r.Refused() {
			return finding.New(causeRejected, f.Expected, "none; the API server did not take the one that was sent: %s", r)
		}
	}
	if panicked := m.whyPanicked(f); panicked != f {
		return panicked
	}
	if namespaces := watchedNamespaces(sent); len(namespaces) > 0 && !slices.Contains(namespaces, m.Namespace) {
		return finding.New("looks-elsewhere", f.Expected, "none; your manager looks for Memcacheds in the namespace %s only", strings.Join(namespaces, ", "))
	}
	if other := m.elsewhere(ctx); other != nil {
		return other
	}
	return f
}

// elsewhere finds a Deployment that was probably meant for this Memcached: one that no other Memcached
// has the name of.
func (m Memcached) elsewhere(ctx context.Context) *finding.Finding {
	var list appsv1.DeploymentList
	all := m.list()
	if err := errors.Join(current.admin.List(ctx, &list), current.admin.List(ctx, all)); err != nil {
		return nil //nolint:nilerr // only one more clue
	}
	meant := map[types.NamespacedName]bool{}
	for _, other := range all.Items {
		meant[client.ObjectKeyFromObject(&other)] = true
	}
	expected := fmt.Sprintf("a Deployment %s", m)
	for _, d := range list.Items {
		switch {
		case meant[client.ObjectKeyFromObject(&d)]:
		case d.Namespace == m.Namespace && d.Name != m.Name:
			return finding.New("wrong-name", expected, "a Deployment %s/%s", d.Namespace, d.Name)
		case d.Namespace != m.Namespace && d.Name == m.Name:
			return finding.New("wrong-namespace", expected, "a Deployment %s/%s", d.Namespace, d.Name)
		}
	}
	return nil
}

// whyNoEvent explains an event that did not come, by what can be seen of the Memcached that the check has made last.
func whyNoEvent(ctx context.Context, all []Memcached, f *finding.Finding) *finding.Finding {
	if len(all) == 0 {
		return f
	}
	m := all[len(all)-1]
	for _, r := range requests(0) {
		if r.Resource == "events" && r.Refused() && r.Namespace == m.Namespace {
			return finding.New(causeRejected, f.Expected, "the API server did not take it: %s", r)
		}
	}
	var list eventsv1.EventList
	if err := current.admin.List(ctx, &list, client.InNamespace(m.Namespace)); err != nil {
		return f // only one more clue
	}
	for _, e := range list.Items {
		if fromLearner(e) && e.Regarding.Kind != gvk.Kind {
			return finding.New("wrong-object", f.Expected, "an event %s on %s %s", e.Reason, e.Regarding.Kind, e.Regarding.Name)
		}
	}
	if panicked := m.whyPanicked(f); panicked != f {
		return panicked
	}
	// A type that does not exist never gets as far as the API server. Both recorders say so alike, in the log.
	if lines := LogLines("Unsupported event type"); len(lines) > 0 {
		return finding.New("unsupported-type", f.Expected, "none; the recorder refused one: %s", lines[0])
	}
	return f
}

// builtIn are the controllers of Kubernetes that tell about Deployments and Pods.
var builtIn = map[string]bool{
	"deployment-controller": true, "replicaset-controller": true, "default-scheduler": true,
	"kubelet": true, "resource-quota-controller": true, "": true,
}

func fromLearner(e eventsv1.Event) bool {
	return !builtIn[e.ReportingController] && !builtIn[e.DeprecatedSource.Component+e.ReportingController]
}
