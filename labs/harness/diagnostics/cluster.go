package diagnostics

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"

	"github.com/example/operator-lab/labs/internal/trace"
)

// podLines tell of Pods that could not be made or placed, and of containers that do not run.
func (s *Snapshot) podLines() []string {
	var lines []string
	for _, d := range s.objects.deployments {
		for _, c := range d.Status.Conditions {
			if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue && !s.ownQuota(c.Message) {
				lines = append(lines, fmt.Sprintf("Deployment %s gets none: %s", d.Name, c.Message))
			}
		}
	}
	for _, pod := range s.objects.pods {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				lines = append(lines, fmt.Sprintf("Pod %s has no node: %s", pod.Name, c.Message))
			}
		}
	}
	return append(lines, s.containerLines()...)
}

// containerLines tell of containers that do not run, those with the same trouble in one line, and what one
// of them said last.
func (s *Snapshot) containerLines() []string {
	type state struct{ container, what string }
	var order []state
	pods, reasons := map[state][]string{}, map[state]string{}
	for _, pod := range s.objects.pods {
		for _, c := range statuses(pod) {
			at := state{c.Name, trouble(c)}
			if at.what == "" {
				continue
			}
			if pods[at] == nil {
				order = append(order, at)
			}
			pods[at] = append(pods[at], pod.Name)
			if c.State.Waiting != nil {
				reasons[at] = c.State.Waiting.Reason + ", "
			}
		}
	}
	var lines []string
	for _, at := range order {
		lines = append(lines, fmt.Sprintf("container %s of %s: %s%s", at.container, amount(pods[at]), reasons[at], at.what))
		for _, pod := range pods[at] {
			if said := lastWords(s.output[pod+"/"+at.container]); said != "" {
				lines = append(lines, "it said: "+said)
				break
			}
		}
	}
	return lines
}

// starting are the reasons for which a container that is about to run waits.
var starting = []string{"", "ContainerCreating", "PodInitializing"}

// trouble says what is wrong with a container that does not run, "" when nothing is. How often it was
// started is left out: the same container in another Pod may be one start behind.
func trouble(c corev1.ContainerStatus) string {
	ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
	switch w := c.State.Waiting; {
	case c.State.Running != nil:
		return ""
	case ended != nil && (ended.ExitCode != 0 || c.RestartCount > 0):
		return fmt.Sprintf("it ended with exit code %d", ended.ExitCode)
	case w != nil && !slices.Contains(starting, w.Reason):
		return w.Message
	}
	return ""
}

func amount(pods []string) string {
	if len(pods) == 1 {
		return "Pod " + pods[0]
	}
	return fmt.Sprintf("%d Pods", len(pods))
}

// restated are the reasons of a kubelet's warnings that say what a container's state says.
var restated = []string{"BackOff", "Failed"}

// eventLines are the warnings about the check's objects, or what else was told about its Memcacheds. Events
// of one kind are one line, with a count and the words of the last.
func (s *Snapshot) eventLines(severity string) []string {
	type kind struct{ reason, regarding string }
	last, counts, inTrouble := map[kind]eventsv1.Event{}, map[kind]int{}, len(s.containerLines()) > 0
	var order []kind
	for _, e := range s.objects.events {
		repeats := inTrouble && e.Regarding.Kind == "Pod" && slices.Contains(restated, e.Reason)
		about := severity == corev1.EventTypeWarning || s.isMemcached(e.Regarding)
		if e.Type != severity || s.ownQuota(e.Note) || repeats || !about {
			continue
		}
		k := kind{e.Reason, e.Regarding.Kind}
		if counts[k] == 0 {
			order = append(order, k)
		}
		last[k] = e
		counts[k] += trace.Times(&e)
	}
	var lines []string
	for _, k := range order {
		lines = append(lines, fmt.Sprintf("%s %s on %s%s: %s", severity, k.reason, k.regarding, times(counts[k]), last[k].Note))
	}
	return lines
}

func (s *Snapshot) isMemcached(ref corev1.ObjectReference) bool {
	for _, m := range s.objects.memcacheds {
		if m.GetKind() == ref.Kind && m.GetName() == ref.Name {
			return true
		}
	}
	return false
}

// ownQuota says whether a message is about the quota that the check itself has set.
func (s *Snapshot) ownQuota(message string) bool {
	return s.Quota != "" && strings.Contains(message, "exceeded quota: "+s.Quota+",")
}

// lastWords are the last two lines of a text: the last one is often the advice, and the one before it the
// complaint.
func lastWords(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(0, len(lines)-2):], " / ")
}
