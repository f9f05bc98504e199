package env

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/labs/internal/finding"
)

func startedAs(command, args []string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Command: command, Args: args}}},
	}
}

// A container that was started again runs, and has ended all the same.
func TestEndedContainers(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 64}}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	pod, going := startedAs([]string{"memcached"}, []string{"--no-such-option"}), metav1.NewTime(time.Now())
	for name, tc := range map[string]struct {
		status corev1.ContainerStatus
		gone   bool
		found  bool
	}{
		"runs":                {status: corev1.ContainerStatus{State: running}},
		"ended":               {status: corev1.ContainerStatus{State: ended}, found: true},
		"was started again":   {status: corev1.ContainerStatus{State: running, LastTerminationState: ended}, found: true},
		"ends with its Pod":   {status: corev1.ContainerStatus{State: ended}, gone: true},
		"is not started yet":  {status: corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}}}},
		"has no state at all": {},
	} {
		pod := pod.DeepCopy()
		if tc.gone {
			pod.DeletionTimestamp = &going
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{tc.status}
		err := Ended([]corev1.Pod{*pod})
		if (err != nil) != tc.found {
			t.Errorf("%s: got %v", name, err)
		}
		if err == nil {
			continue
		}
		if f := finding.Of(err); f.Cause != "crashing" || !strings.Contains(f.Seen, "exit code 64") || !strings.Contains(f.Seen, "`memcached --no-such-option`") {
			t.Errorf("%s: got %+v", name, f)
		}
	}
}

func TestStartedWith(t *testing.T) {
	for want, pod := range map[string]corev1.Pod{
		"`memcached --port=1`": startedAs([]string{"memcached"}, []string{"--port=1"}),
		"`--port=1`":           startedAs(nil, []string{"--port=1"}),
		"what its image says":  startedAs(nil, nil),
	} {
		if got := startedWith(pod); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
