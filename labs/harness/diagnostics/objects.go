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
	"github.com/example/operator-lab/labs/internal/trace"
)

// Read looks at Memcacheds, which are of the learner's kind, and at what a Deployment brings about. Secrets are never read. What
// cannot be read within ctx is left out.
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

// Keep writes objects and the output of containers that do not run into a folder. What cannot be written is left out: a full disk is found out
// elsewhere.
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

// podLines tell of containers that do not run, with the last lines of one's output. Events tell of Pods that do not get as far.
func (s *Snapshot) podLines() []string {
	var lines groups
	for _, pod := range s.pods.Items {
		for _, c := range pod.Status.ContainerStatuses {
			if what := trouble(c); what != "" {
				output := strings.FieldsFunc(s.output[pod.Name+"-"+c.Name], func(r rune) bool { return r == '\n' || r == '\r' })
				// The last line is often the advice, and the one before it the complaint.
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

// eventLines are the warnings about the check's objects, the most recent first. Events of one kind are one line, with the words of
// the last one.
func (s *Snapshot) eventLines() []string {
	var kinds groups
	for _, e := range slices.Backward(s.events.Items) {
		ownQuota := s.Quota != "" && strings.Contains(e.Note, "exceeded quota: "+s.Quota+",")
		if e.Type == corev1.EventTypeWarning && !ownQuota {
			kinds.add(fmt.Sprintf("Warning %s on %s", e.Reason, e.Regarding.Kind), e.Note, trace.Times(&e))
		}
	}
	return kinds.lines()
}

// readinessTimeout is how long a container may take to answer its readiness probe, however often it is asked.
const readinessTimeout = 4 * time.Second

// NotReady is a finding about a container that runs, and has failed its readiness probe as often as it may. It returns nil when there
// is none, or none yet. How long a startup probe takes is not known: a container that has one is waited for.
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
				"it runs, and its readiness probe %s has not succeeded for %s", asks, runs.Round(time.Second))
		}
	}
	return nil
}
