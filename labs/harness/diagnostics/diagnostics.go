// Package diagnostics explains why a check failed. It reads objects, requests and the manager's log once, into a [Snapshot].
// The snapshot may have a better cause for the finding, chooses the few lines that explain it, and writes the rest to files.
package diagnostics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/example/operator-lab/labs/harness/apiproxy"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/suite"
)

const (
	maxLines = 3   // of one kind of evidence, so that a report fits on one screen
	maxWidth = 260 // of one line, in characters
)

// Snapshot is the state of a check's objects and manager when the check failed. Every field is optional.
type Snapshot struct {
	// Namespaces are the check's own.
	Namespaces []string
	// Quota is the name of the quota by which checks keep their namespaces free of Pods. Events about it explain nothing.
	Quota string
	// Workspace is the folder with the learner's files.
	Workspace string

	// Of is the object that the check looked at, and Resource its resource. Missing says that there was no such object. Rejected
	// says that the API server kept refusing what the manager wrote to it, which ended the wait.
	Of                types.NamespacedName
	Resource          string
	Missing, Rejected bool

	// User is the manager's user name at the API server, "" for a check that judges no manager.
	User string
	// Log is the last part of the manager's output.
	Log string
	// Requests are the manager's requests, in order. Denied are those of them that it had no right to.
	Requests, Denied []apiproxy.Request

	memcacheds  unstructured.UnstructuredList // of all namespaces, like deployments
	deployments appsv1.DeploymentList
	pods        corev1.PodList
	events      eventsv1.EventList // in the order of their creation
	output      map[string]string  // of containers that do not run, by "pod-container"
}

// Explain chooses the evidence for f, the most telling first. It leaves out what f says itself.
func (s *Snapshot) Explain(f *finding.Finding) (all []finding.Evidence) {
	said := plain.Short(f.Seen, maxWidth)
	if len(f.Fields) > 0 {
		said = "" // the fields are shown in its place
	}
	add := func(title string, lines ...string) {
		var chosen []string
		for _, line := range lines {
			if line = plain.Short(Redact(line), maxWidth); !strings.Contains(said, line) && len(chosen) < maxLines {
				chosen = append(chosen, line)
			}
		}
		if len(chosen) > 0 {
			all = append(all, finding.Evidence{Title: title, Lines: chosen})
		}
	}
	panicked, refused := FindPanic(s.Log, s.Workspace, s.Namespaces), s.refused()
	if panicked != "" {
		add("Your code panicked", panicked)
	}
	var refusals groups
	for _, r := range refused {
		if said == "" || !strings.Contains(f.Seen, r.String()) && !strings.Contains(f.Seen, r.Kind()+":") {
			refusals.add(fmt.Sprintf("%s: %d", r.Kind(), r.Status), r.Reason(s.User), 1)
		}
	}
	add("The API server refused your manager", refusals.lines()...)
	if panicked == "" && len(refused) == 0 { // else the log says the same
		add("Your manager's log", Trouble(s.Log, s.Namespaces, maxLines)...)
	}
	add("The Pods", s.podLines()...)
	add("The events", s.eventLines()...)
	if len(all) > 0 || s.User == "" || panicked != "" || len(refused) > 0 {
		return all
	}
	if f.Cause != suite.CauseManagerExited && f.Cause != suite.CauseManagerSilent {
		add("Your manager wrote", s.writes())
	}
	add("Your manager's log ends with", Last(s.Log, s.Namespaces, maxLines)...)
	return all
}

// groups counts equal entries, in the order in which each came first.
type groups []group

type group struct {
	what, detail string
	n            int
}

// add adds n to the count of what. It keeps the first detail.
func (g *groups) add(what, detail string, n int) {
	i := slices.IndexFunc(*g, func(have group) bool { return have.what == what })
	if i < 0 {
		i, *g = len(*g), append(*g, group{what: what})
	}
	(*g)[i].n += n
	(*g)[i].detail = cmp.Or((*g)[i].detail, detail)
}

func (g groups) lines() (all []string) {
	for _, one := range g {
		line := one.what
		if one.n > 1 {
			line += fmt.Sprintf(" (%d times)", one.n)
		}
		if one.detail != "" {
			line += ": " + one.detail
		}
		all = append(all, line)
	}
	return all
}
