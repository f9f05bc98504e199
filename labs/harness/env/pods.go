package env

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/internal/finding"
)

// failedReasons are reasons of container states that no waiting fixes, with the cause that each is reported as.
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
	if err := current.admin.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Pods of Deployment %s: %w", d.Name, err)
	}
	return list.Items, nil
}

// PodsOf lists the Pods of the Memcached's Deployment when it is polled: use it with Eventually and Consistently.
func PodsOf(m Memcached) func(context.Context) ([]corev1.Pod, error) {
	return polled(m.Namespace, pollInterval, m.Pods)
}

// Pods lists the Pods of the Memcached's Deployment.
func (m Memcached) Pods(ctx context.Context) ([]corev1.Pod, error) {
	d, err := m.Deployment(ctx)
	if err != nil {
		return nil, err
	}
	return podsOf(ctx, d)
}

// Rollout is a Deployment and what can be seen of its Pods.
type Rollout struct {
	*appsv1.Deployment
	// Trouble is a finding about what keeps the Pods from becoming available, nil when nothing shows. One that is marked with
	// [Final] will stay.
	Trouble error
}

// RolloutOf reads the Memcached's Deployment and its Pods when it is polled: use it with Eventually and Consistently.
func RolloutOf(m Memcached) func(context.Context) (Rollout, error) {
	return polled(m.Namespace, refreshInterval, func(ctx context.Context) (Rollout, error) {
		d, err := m.deployment(ctx)
		if err != nil || d.UID == "" {
			return Rollout{Deployment: d}, err
		}
		return Rollout{Deployment: d, Trouble: whyNoPods(ctx, d)}, nil
	})
}

// Ended is a finding about a container of the Pods that ended by itself, or nil.
func Ended(pods []corev1.Pod) error {
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if err := hasEnded(pod, status); err != nil {
				return err
			}
		}
	}
	return nil
}

// hasEnded is a finding about a container that ended by itself, or nil.
func hasEnded(pod corev1.Pod, status corev1.ContainerStatus) error {
	ended := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	if pod.DeletionTimestamp != nil || ended == nil {
		return nil
	}
	return finding.New("crashing", fmt.Sprintf("container %s of Pod %s goes on running", status.Name, pod.Name),
		"it ended with exit code %d; it is started with %s", ended.ExitCode, startedWith(pod))
}

// DeletePods deletes all Pods of the Memcached's namespace, and lets no others be created.
func (m Memcached) DeletePods(ctx context.Context) error {
	if err := Quota(ctx, m.Namespace, 0); err != nil {
		return err
	}
	if err := current.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(m.Namespace), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete the Pods of %s: %w", m, err)
	}
	return nil
}

// whyNoPods looks for a Pod that can never become good, and for Pods that could not be created.
func whyNoPods(ctx context.Context, d *appsv1.Deployment) error {
	pods, err := podsOf(ctx, d)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if f := failedState(pod.Name, status); f != nil {
				return Final(f)
			}
		}
		if err := whyNotReady(pod); err != nil {
			return err
		}
	}
	for _, c := range d.Status.Conditions {
		if c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue {
			return finding.New("not-created", "the Pods of the Deployment", "%s", c.Message)
		}
	}
	return nil
}

func failedState(pod string, status corev1.ContainerStatus) *finding.Finding {
	expected := fmt.Sprintf("container %s of Pod %s runs", status.Name, pod)
	if w := status.State.Waiting; w != nil && failedReasons[w.Reason] != "" {
		return finding.New(failedReasons[w.Reason], expected, "%s: %s", w.Reason, w.Message)
	}
	if t := status.State.Terminated; t != nil && status.RestartCount > 0 {
		return finding.New("crashing", expected, "it ended with exit code %d, and was started %d times", t.ExitCode, status.RestartCount+1)
	}
	return nil
}

// memcachedVersion is what memcached says when it is asked; answerTimeout is how long to listen, and answerLimit how many
// bytes at most. An answer takes some milliseconds, and seconds through the API server of a machine that is very busy.
const (
	memcachedVersion = "VERSION "
	answerTimeout    = 30 * time.Second
	answerLimit      = 64 << 10
)

// AskVersion says `version` to the given port of a Pod, through the API server, and wants memcached's answer.
func AskVersion(ctx context.Context, pod corev1.Pod, port int32) error {
	return ask(ctx, pod, port, "version", func(line string) (bool, error) {
		if !strings.HasPrefix(line, memcachedVersion) {
			return false, finding.New("wrong-answer", answers(pod, port), "%q", line)
		}
		return true, nil
	})
}

// AskSetting asks memcached in a Pod for one of its settings, such as maxconns, through the API server. One that memcached
// does not know is "".
func AskSetting(ctx context.Context, pod corev1.Pod, port int32, name string) (value string, _ error) {
	return value, ask(ctx, pod, port, "stats settings", func(line string) (bool, error) {
		if fields := strings.Fields(line); len(fields) == 3 && fields[1] == name {
			value = fields[2]
		}
		return line == "END" || value != "", nil
	})
}

// ask says something to memcached, and reads lines of its answer until read has seen enough.
func ask(ctx context.Context, pod corev1.Pod, port int32, question string, read func(line string) (enough bool, _ error)) error {
	expected := answers(pod, port)
	conn, err := dial(ctx, pod, port)
	if err != nil {
		return nobodyListens(pod, expected, err.Error())
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(answerTimeout)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if _, err := io.WriteString(conn, question+"\r\n"); err != nil {
		return nobodyListens(pod, expected, err.Error())
	}
	for answer := bufio.NewReader(io.LimitReader(conn, answerLimit)); ; {
		line, err := answer.ReadString('\n')
		if err != nil {
			return nobodyListens(pod, expected, fmt.Sprintf("the connection ended without an answer (%v)", err))
		}
		if enough, err := read(strings.TrimSpace(line)); enough || err != nil {
			return err
		}
	}
}

func answers(pod corev1.Pod, port int32) string {
	return fmt.Sprintf("memcached answers on port %d of Pod %s", port, pod.Name)
}

// nobodyListens says how the attempt went, and how memcached was told where to listen.
func nobodyListens(pod corev1.Pod, expected, how string) *finding.Finding {
	return finding.New("nobody-listens", expected, "%s; the container is started with %s", how, startedWith(pod))
}

// startedWith is the command line of a Pod's first container, as far as its spec decides it.
func startedWith(pod corev1.Pod) string {
	if len(pod.Spec.Containers) == 0 {
		return "nothing"
	}
	c := pod.Spec.Containers[0]
	words := slices.Concat(c.Command, c.Args)
	switch {
	case len(words) == 0:
		return "what its image says, without arguments of yours"
	case len(c.Command) == 0:
		return fmt.Sprintf("the arguments `%s`", strings.Join(words, " "))
	}
	return fmt.Sprintf("`%s`", strings.Join(words, " "))
}

// tunnel is a connection to a Pod, and the port-forward that carries it.
type tunnel struct {
	net.Conn
	stop chan struct{}
}

// Close ends the connection and the port-forward.
func (t *tunnel) Close() error {
	defer close(t.stop)
	return t.Conn.Close()
}

func dial(ctx context.Context, pod corev1.Pod, port int32) (net.Conn, error) {
	clientset, err := kubernetes.NewForConfig(current.adminConfig)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(current.adminConfig)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	dialer := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	stop, ready, failed := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, fmt.Errorf("prepare port-forward: %w", err)
	}
	go func() { failed <- forwarder.ForwardPorts() }()
	select {
	case <-ctx.Done():
		close(stop)
		return nil, ctx.Err()
	case err := <-failed:
		return nil, err
	case <-ready:
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		close(stop)
		return nil, fmt.Errorf("port-forward: %w", err)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", ports[0].Local))
	if err != nil {
		close(stop)
		return nil, err
	}
	return &tunnel{Conn: conn, stop: stop}, nil
}
