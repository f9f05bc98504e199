package env

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
)

// failedReasons maps the reasons of waiting containers that do not recover to the causes of findings.
var failedReasons = map[string]string{
	"ErrImageNeverPull":          "image-pull",
	"ErrImagePull":               "image-pull",
	"ImagePullBackOff":           "image-pull",
	"InvalidImageName":           "image-pull",
	"CrashLoopBackOff":           "crashing",
	"RunContainerError":          "crashing",
	"CreateContainerConfigError": "crashing",
	"StartError":                 "crashing",
}

// podsOf lists the Pods that the Deployment's selector picks.
func podsOf(ctx context.Context, d *appsv1.Deployment) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read selector of Deployment %s: %w", d.Name, err)
	}
	var list corev1.PodList
	err = current.admin.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector})
	return list.Items, err
}

// Pods lists the Pods of the Memcached's Deployment.
func (m Memcached) Pods(ctx context.Context) ([]corev1.Pod, error) {
	d, err := m.Deployment(ctx)
	if err != nil {
		return nil, err
	}
	return podsOf(ctx, d)
}

// Rollout is a Deployment and the state of its Pods.
type Rollout struct {
	*appsv1.Deployment
	// Trouble is a finding about what keeps the Pods from becoming available, nil if nothing is seen. It is marked with [Final] if
	// it will stay.
	Trouble error
}

// RolloutOf reads the Memcached's Deployment and its Pods when it is polled: use it with Eventually and Consistently.
func RolloutOf(m Memcached) func(context.Context) (Rollout, error) {
	return Polled(func(ctx context.Context) (Rollout, error) {
		d, err := m.deployment(ctx)
		if err != nil || d.UID == "" {
			return Rollout{Deployment: d}, err
		}
		return Rollout{Deployment: d, Trouble: whyNoPods(ctx, d)}, nil
	})
}

// DeletePods deletes all Pods of the Memcached's namespace, and forbids new ones with [Quota]. The namespace must have no such quota.
func (m Memcached) DeletePods(ctx context.Context) error {
	Quota(0)(ctx, m.Namespace)
	return current.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(m.Namespace), client.GracePeriodSeconds(0))
}

// whyNoPods looks for a Pod that cannot become available, and for Pods that could not be created.
func whyNoPods(ctx context.Context, d *appsv1.Deployment) error {
	pods, err := podsOf(ctx, d)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			expected := fmt.Sprintf("container %s of Pod %s runs", status.Name, pod.Name)
			if w := status.State.Waiting; w != nil && failedReasons[w.Reason] != "" {
				return Final(finding.New(failedReasons[w.Reason], expected, "%s: %s", w.Reason, w.Message))
			}
			if t := status.State.Terminated; t != nil && status.RestartCount > 0 {
				return Final(finding.New("crashing", expected,
					"it ended with exit code %d, and was started %d times", t.ExitCode, status.RestartCount+1))
			}
		}
		if err := diagnostics.NotReady(pod); err != nil {
			return Final(err)
		}
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return finding.New("not-created", "the Pods of the Deployment", "%s", c.Message)
		}
	}
	return nil
}

// answerTimeout is how long to wait for an answer. It takes some milliseconds, and seconds on a machine that is very busy.
const answerTimeout = 30 * time.Second

// Ask sends a command to memcached on a port of a Pod, and reads its answer. It uses a port-forward, which has two streams: one for
// the data, and one for an error inside the Pod.
func Ask(ctx context.Context, pod corev1.Pod, port int32, question string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	pods := current.clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace)
	url := pods.Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(current.adminConfig)
	if err != nil {
		return "", fmt.Errorf("prepare port-forward: %w", err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	conn, _, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return "", nobodyListens(pod, port, err.Error())
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(int(port)))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	header.Set(corev1.StreamType, corev1.StreamTypeError) // the first of the two
	failed, err := conn.CreateStream(header)
	if err != nil {
		return "", nobodyListens(pod, port, err.Error())
	}
	_ = failed.Close() // closes only the direction to the Pod
	header.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(header)
	if err != nil {
		return "", nobodyListens(pod, port, err.Error())
	}
	_, _ = io.WriteString(data, question+"\r\nquit\r\n")
	if answer, _ := io.ReadAll(data); len(answer) > 0 {
		return string(answer), nil
	}
	why, _ := io.ReadAll(failed)
	return "", nobodyListens(pod, port, cmp.Or(string(why), "the connection ended without an answer"))
}

// nobodyListens is the finding about a port that does not answer, with the error and the container's command line.
func nobodyListens(pod corev1.Pod, port int32, how string) *finding.Finding {
	c := pod.Spec.Containers[0] // every Pod has one
	return finding.New("nobody-listens", fmt.Sprintf("memcached answers on port %d of Pod %s", port, pod.Name),
		"%s; the container is started with the command %q and the arguments %q", how, c.Command, c.Args)
}

// Reachable wants a program that listens on a port of the Pod's own address. A port-forward ends inside the Pod, where
// a program on 127.0.0.1 answers as well. The API server's proxy comes from outside. It speaks HTTP, which memcached
// does not: every answer but a refused connection passes. The reason for a failure is in the body of the proxy's
// answer, and not always in the error.
func Reachable(ctx context.Context, pod corev1.Pod, port int32) error {
	answer, err := current.clientset.CoreV1().Pods(pod.Namespace).ProxyGet("", pod.Name, strconv.Itoa(int(port)), "/", nil).DoRaw(ctx)
	if err == nil {
		return nil
	}
	const refused = "connection refused"
	switch text := err.Error() + string(answer); {
	case !strings.Contains(text, "error trying to reach service"):
		return fmt.Errorf("reach Pod %s by way of the API server: %w", pod.Name, err)
	case !strings.Contains(text, refused):
		return nil // an answer that is not HTTP
	}
	return finding.New("listens-locally", fmt.Sprintf("memcached can be reached on port %d of Pod %s", port, pod.Name),
		"it answers inside the Pod, but a connection from outside gets: %s", refused)
}
