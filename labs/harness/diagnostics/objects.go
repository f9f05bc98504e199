package diagnostics

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Read reads Memcacheds, of the given kind, Deployments, Pods, events, and the output of containers that do not run. It never reads
// Secrets, and leaves out what it cannot read.
func (s *Snapshot) Read(ctx context.Context, c client.Reader, clientset kubernetes.Interface, learners schema.GroupVersionKind) {
	s.memcacheds.SetGroupVersionKind(learners.GroupVersion().WithKind(learners.Kind + "List"))
	for _, list := range s.lists() {
		_ = c.List(ctx, list)
	}
	s.pods.Items = slices.DeleteFunc(s.pods.Items, func(p corev1.Pod) bool { return !s.owns(p.Namespace) })
	s.events.Items = slices.DeleteFunc(s.events.Items, func(e eventsv1.Event) bool { return !s.owns(e.Namespace) })
	slices.SortStableFunc(s.events.Items, func(a, b eventsv1.Event) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	s.output = map[string]string{}
	for _, pod := range s.pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if trouble(c) == "" {
				continue
			}
			options := &corev1.PodLogOptions{Container: c.Name, TailLines: new(int64(50))}
			if text, err := clientset.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, options).DoRaw(ctx); err == nil && len(text) > 0 {
				s.output[pod.Name+"-"+c.Name] = string(text)
			}
		}
	}
}

func (s *Snapshot) lists() []client.ObjectList {
	return []client.ObjectList{&s.memcacheds, &s.deployments, &s.pods, &s.events}
}

func (s *Snapshot) owns(namespace string) bool { return slices.Contains(s.Namespaces, namespace) }

// Keep writes objects and the output of containers that do not run into a folder, without credentials. It leaves out what it cannot
// write: something else reports a full disk.
func (s *Snapshot) Keep(dir string) {
	files := map[string]string{}
	for _, list := range s.lists() {
		_ = meta.EachListItem(list, func(item runtime.Object) error {
			object := item.(client.Object)
			object.SetManagedFields(nil)
			if data, err := yaml.Marshal(object); err == nil && s.owns(object.GetNamespace()) {
				files["objects.yaml"] += "---\n" + string(data)
			}
			return nil
		})
	}
	for container, text := range s.output {
		files[container+".log"] = text
	}
	for name, text := range files {
		if os.MkdirAll(dir, 0o755) == nil {
			_ = os.WriteFile(filepath.Join(dir, name), []byte(Redact(text)), 0o600)
		}
	}
}

// podLines are about containers that do not run, each with the last lines of its output. Pods without containers are in
// [Snapshot.eventLines].
func (s *Snapshot) podLines() []string {
	var lines groups
	for _, pod := range s.pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if what := trouble(c); what != "" {
				output := strings.FieldsFunc(s.output[pod.Name+"-"+c.Name], func(r rune) bool { return r == '\n' || r == '\r' })
				// Often the last line is advice, and the line before it is the error.
				lines.add("container "+c.Name+": "+what, strings.Join(output[max(0, len(output)-2):], " / "), 1)
			}
		}
	}
	return lines.lines()
}

// trouble says what is wrong with a container that does not run, "" when nothing is.
func trouble(c corev1.ContainerStatus) string {
	ended := cmp.Or(c.State.Terminated, c.LastTerminationState.Terminated)
	switch w := c.State.Waiting; {
	case c.State.Running != nil:
		return ""
	case ended != nil && (ended.ExitCode != 0 || c.RestartCount > 0):
		return fmt.Sprintf("it ended with exit code %d", ended.ExitCode)
	case w != nil && !slices.Contains([]string{"", "ContainerCreating", "PodInitializing"}, w.Reason):
		return w.Reason + ", " + w.Message
	}
	return ""
}

// eventLines are the warnings about the check's objects, the most recent first. Events with one reason and one kind of object are one
// line, with the text of the most recent one.
func (s *Snapshot) eventLines() []string {
	var kinds groups
	for _, e := range slices.Backward(s.events.Items) {
		ownQuota := s.Quota != "" && strings.Contains(e.Note, "exceeded quota: "+s.Quota+",")
		if e.Type == corev1.EventTypeWarning && !ownQuota {
			kinds.add(fmt.Sprintf("Warning %s on %s", e.Reason, e.Regarding.Kind), e.Note, times(&e))
		}
	}
	return kinds.lines()
}

// times is how often an event was recorded, by client-go's old recorder or by the new one.
func times(e *eventsv1.Event) int {
	n := max(1, int(e.DeprecatedCount))
	if e.Series != nil {
		n = max(n, int(e.Series.Count))
	}
	return n
}

// readinessTimeout is how long a container may at least take until its readiness probe succeeds.
const readinessTimeout = 4 * time.Second

// NotReady returns a finding about a container that runs, and whose readiness probe has failed as often as it may. It returns nil if
// there is none so far. A container with a startup probe never counts, because nobody knows how long that takes.
func NotReady(pod corev1.Pod) error {
	for _, status := range pod.Status.ContainerStatuses {
		i := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool {
			return c.Name == status.Name && c.ReadinessProbe != nil && c.StartupProbe == nil
		})
		if i < 0 || status.Ready || status.State.Running == nil {
			continue
		}
		p, runs := pod.Spec.Containers[i].ReadinessProbe, time.Since(status.State.Running.StartedAt.Time)
		due := time.Duration(p.InitialDelaySeconds+(p.FailureThreshold+p.SuccessThreshold)*p.PeriodSeconds+1) * time.Second
		if runs > max(due, readinessTimeout) {
			asks, _ := json.Marshal(p.ProbeHandler)
			return finding.New("not-ready", fmt.Sprintf("container %s of Pod %s is ready", status.Name, pod.Name),
				"it runs, and its readiness probe %s has not succeeded for %s", asks, runs.Round(time.Second)).TooLate()
		}
	}
	return nil
}
