package env

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func startedAs(command, args []string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Command: command, Args: args}}},
	}
}

func TestStartedWith(t *testing.T) {
	for want, pod := range map[string]corev1.Pod{
		"`memcached --port=1`": startedAs([]string{"memcached"}, []string{"--port=1"}),
		"`--port=1`":           startedAs(nil, []string{"--port=1"}),
		"command of its image": startedAs(nil, nil),
	} {
		if got := startedWith(pod); !strings.Contains(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
