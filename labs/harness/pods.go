package harness

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

// hopeless are container states that no waiting mends, with the cause that each is reported as.
var hopeless = map[string]string{
	"ErrImageNeverPull":          "image-pull",
	"ErrImagePull":               "image-pull",
	"ImagePullBackOff":           "image-pull",
	"InvalidImageName":           "image-pull",
	"CrashLoopBackOff":           "crashing",
	"RunContainerError":          "crashing",
	"CreateContainerConfigError": "crashing",
	"StartError":                 "crashing",
}

// Pods lists the Pods that the Deployment's selector picks.
func Pods(ctx context.Context, d *appsv1.Deployment) ([]corev1.Pod, error) {
	selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("read selector of Deployment %s: %w", d.Name, err)
	}
	var list corev1.PodList
	if err := suite.admin.List(ctx, &list, client.InNamespace(d.Namespace), client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, fmt.Errorf("list Pods of Deployment %s: %w", d.Name, err)
	}
	return list.Items, nil
}

// forPods is a wait for real Pods, whoever wrote the operator.
var forPods = wait{budget: PodsBudget, idle: true, patience: PodsPatience}

// AwaitPods waits until the Memcached's Deployment has as many available Pods as its size says. Meanwhile
// each of the conditions has to hold whenever the Deployment has changed.
func (m Memcached) AwaitPods(ctx context.Context, throughout ...func(*appsv1.Deployment) error) (*appsv1.Deployment, error) {
	return m.awaitDeployment(ctx, forPods, func(d *appsv1.Deployment) error {
		for _, hold := range throughout {
			if err := hold(d); err != nil {
				return Stop(err)
			}
		}
		return orWhyNoPods(ctx, d, Available(m.Size)(d))
	})
}

// StayUp wants every container of the Deployment's Pods to go on running for [UpPeriod]. Without a readiness
// probe, which nobody has to write, a container that ends at once counts as available for a moment.
func StayUp(ctx context.Context, d *appsv1.Deployment) error {
	return Throughout(ctx, UpPeriod, func() error {
		pods, err := Pods(ctx, d)
		if err != nil {
			return err
		}
		for _, pod := range pods {
			for _, status := range pod.Status.ContainerStatuses {
				if err := hasEnded(pod, status); err != nil {
					return err
				}
			}
		}
		return nil
	})
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

// AwaitMade waits until the Memcached's Deployment has as many Pods as its size says, running or not.
func (m Memcached) AwaitMade(ctx context.Context) error {
	_, err := m.awaitDeployment(ctx, forPods, func(d *appsv1.Deployment) error {
		if d.Status.Replicas == m.Size {
			return nil
		}
		return orWhyNoPods(ctx, d, finding.New("too-few", fmt.Sprintf("%d Pods", m.Size), "%d", d.Status.Replicas))
	})
	return err
}

// AwaitSome waits until n Pods of the Memcached's Deployment are available, however many it wants.
func (m Memcached) AwaitSome(ctx context.Context, n int32) error {
	_, err := m.awaitDeployment(ctx, forPods, func(d *appsv1.Deployment) error {
		if d.Status.AvailableReplicas < n {
			return finding.New("too-few", fmt.Sprintf("%d available Pods", n), "%d", d.Status.AvailableReplicas)
		}
		return nil
	})
	return err
}

// LosePods deletes all Pods of the Memcached's namespace, and lets no others be created.
func (m Memcached) LosePods(ctx context.Context) error {
	if err := Quota(ctx, m.Namespace, 0); err != nil {
		return err
	}
	if err := suite.admin.DeleteAllOf(ctx, &corev1.Pod{}, client.InNamespace(m.Namespace), client.GracePeriodSeconds(0)); err != nil {
		return fmt.Errorf("delete the Pods of %s: %w", m, err)
	}
	return nil
}

// orWhyNoPods is lacking, or the reason for it where one can be seen; nil when nothing is lacking.
func orWhyNoPods(ctx context.Context, d *appsv1.Deployment, lacking error) error {
	if lacking == nil {
		return nil
	}
	return cmp.Or(whyNoPods(ctx, d), lacking)
}

// whyNoPods looks for a Pod that can never become good, and for Pods that could not be created.
func whyNoPods(ctx context.Context, d *appsv1.Deployment) error {
	pods, err := Pods(ctx, d)
	if err != nil {
		return err
	}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if f := hopelessState(pod.Name, status); f != nil {
				return Stop(f)
			}
		}
		if err := whyNotReady(ctx, pod); err != nil {
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

func hopelessState(pod string, status corev1.ContainerStatus) *finding.Finding {
	expected := fmt.Sprintf("container %s of Pod %s runs", status.Name, pod)
	if w := status.State.Waiting; w != nil && hopeless[w.Reason] != "" {
		return finding.New(hopeless[w.Reason], expected, "%s: %s", w.Reason, w.Message)
	}
	if t := status.State.Terminated; t != nil && status.RestartCount > 0 {
		return finding.New("crashing", expected, "it ended with exit code %d, and was started %d times", t.ExitCode, status.RestartCount+1)
	}
	return nil
}

// memcachedVersion is what memcached says when it is asked; memcachedPatience is how long to listen.
const (
	memcachedVersion  = "VERSION "
	memcachedPatience = 5 * time.Second
)

// AskVersion says `version` to the given port of a Pod, through the API server, until memcached answers.
func AskVersion(ctx context.Context, pod corev1.Pod, port int32) error {
	return Until(ctx, ListenBudget, &corev1.PodList{}, func() error {
		return askVersion(ctx, pod, port)
	}, client.InNamespace(pod.Namespace), fieldName(pod.Name))
}

func askVersion(ctx context.Context, pod corev1.Pod, port int32) error {
	expected := fmt.Sprintf("memcached answers on port %d of Pod %s", port, pod.Name)
	conn, err := dial(ctx, pod, port)
	if err != nil {
		return nobodyListens(pod, expected, err.Error())
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(memcachedPatience)); err != nil {
		return fmt.Errorf("set deadline: %w", err)
	}
	if _, err := io.WriteString(conn, "version\r\n"); err != nil {
		return nobodyListens(pod, expected, err.Error())
	}
	answer, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		return nobodyListens(pod, expected, fmt.Sprintf("the connection ended without an answer (%v)", err))
	}
	if !strings.HasPrefix(answer, memcachedVersion) {
		return finding.New("wrong-answer", expected, "%q", strings.TrimSpace(answer))
	}
	return nil
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
	clientset, err := kubernetes.NewForConfig(suite.adminConfig)
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	url := clientset.CoreV1().RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(suite.adminConfig)
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
