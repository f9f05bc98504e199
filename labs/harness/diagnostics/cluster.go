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

// containerLines tell of containers that do not run, those with the same trouble in one line, and what one of them said last.
func (s *Snapshot) containerLines() []string {
	var states counts
	said := map[string]string{}
	for _, pod := range s.objects.pods {
		for _, c := range statuses(pod) {
			if what := trouble(c); what != "" {
				state := "container " + c.Name + ": " + what
				states.add(state, 1)
				said[state] = cmp.Or(said[state], lastTwoLines(s.output[pod.Name+"/"+c.Name]))
			}
		}
	}
	var lines []string
	for _, state := range states.order {
		lines = append(lines, state+times(states.n[state]))
		if said[state] != "" {
			lines = append(lines, "it said: "+said[state])
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
		return w.Reason + ", " + w.Message
	}
	return ""
}

// eventLines are the warnings about the check's objects. Events of one kind are one line, with a count and the words of the last.
func (s *Snapshot) eventLines() []string {
	var kinds counts
	last, inTrouble := map[string]eventsv1.Event{}, len(s.containerLines()) > 0
	for _, e := range s.objects.events {
		repeats := inTrouble && e.Regarding.Kind == "Pod" // a container's state says it
		if e.Type == corev1.EventTypeWarning && !repeats && !s.ownQuota(e.Note) {
			kind := fmt.Sprintf("Warning %s on %s", e.Reason, e.Regarding.Kind)
			kinds.add(kind, trace.Times(&e))
			last[kind] = e
		}
	}
	var lines []string
	for _, kind := range kinds.order {
		lines = append(lines, fmt.Sprintf("%s%s: %s", kind, times(kinds.n[kind]), last[kind].Note))
	}
	return lines
}

// ownQuota says whether a message is about the quota that the check itself has set.
func (s *Snapshot) ownQuota(message string) bool {
	return s.Quota != "" && strings.Contains(message, "exceeded quota: "+s.Quota+",")
}

// lastTwoLines are those of a text: the last one is often the advice, and the one before it the complaint.
func lastTwoLines(text string) string {
	lines := strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' })
	return strings.Join(lines[max(0, len(lines)-2):], " / ")
}
