package demo

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/example/operator-lab/labs/internal/trace"
)

// step is one thing that a person does, what comes of it, and what lab 0 asks about that.
type step struct {
	Title   string
	Command string // of a shell
	// Refused says that the command has to fail. Its output is shown.
	Refused bool
	// Registry is the status that the registry answers with from now on, 0 for what is right.
	Registry int
	// Until says when the step is over. Then the lab goes on watching for Linger seconds.
	Until  until
	Linger int
	// Waiting is said once when nothing happens for a while.
	Waiting   string
	Why       string
	Questions []question
}

// until is what has to be seen before a step is over.
type until struct {
	// Seen are regular expressions of actions in the step.
	Seen []string
	// Pods is how many there are, all of them available. 0 is the end of all objects.
	Pods *int
	// Available says that the Memcached has to report this of its latest generation.
	Available bool
}

func readSteps(data []byte) (steps []step, err error) {
	if err := yaml.UnmarshalStrict(data, &steps); err != nil {
		return nil, fmt.Errorf("read the steps: %w", err)
	}
	return steps, nil
}

// missing says what has not happened yet, "" when the step is over.
func (u until) missing(told []trace.Action, t *trace.Tracker) string {
	for _, pattern := range u.Seen {
		expression := regexp.MustCompile(pattern)
		if !slices.ContainsFunc(told, func(a trace.Action) bool { return expression.MatchString(a.Actor + " " + a.String()) }) {
			return fmt.Sprintf("nobody did %q", pattern)
		}
	}
	left, pods, available := 0, 0, int64(0)
	for _, o := range t.Objects {
		switch o.GetKind() {
		case "Event":
			continue
		case "Pod":
			pods++
		case "Deployment":
			available, _, _ = unstructured.NestedInt64(o.Object, "status", "availableReplicas")
		case "Memcached":
			if u.Available && !reportsAvailable(o) {
				return "the Memcached does not report Available=True of its latest generation"
			}
		}
		left++
	}
	if u.Pods != nil && (pods != *u.Pods || available != int64(pods) || pods == 0 && left > 0) {
		return fmt.Sprintf("there are %d Pods, %d available, not %d, and %d objects in all", pods, available, *u.Pods, left)
	}
	return ""
}

// reportsAvailable says whether the status has the condition Available of the latest generation.
func reportsAvailable(o *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(c any) bool {
		m, _ := c.(map[string]any)
		return m["type"] == "Available" && m["status"] == "True" && m["observedGeneration"] == o.GetGeneration()
	})
}

// question is one of lab 0.
type question struct {
	ID, Text, Why string
	// Verb, Kind and Name, which is a prefix, are of the action that answers it.
	Verb, Kind, Name string
	// RealPods says that somebody does it only where containers run.
	RealPods bool
}

// nobody is who does what is not done.
const nobody = "nobody"

// answer is who was seen doing it.
func (q question) answer(told []trace.Action) string {
	for _, a := range told {
		if a.Verb == q.Verb && a.Kind == q.Kind && strings.HasPrefix(a.Name, q.Name) && a.Actor != trace.You {
			return a.Actor
		}
	}
	return nobody
}
