package imagetest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters/nodeimage"
)

const (
	// podTimeout is how long Pods whose images are on the node may take on a busy machine.
	podTimeout = 90 * time.Second
	// probeSeconds is how long a Service may take to lead to a Pod that is Ready.
	probeSeconds = "30"
	// namespace is where the test's own Pods are; its name is part of the Service's.
	namespace = "network"
	// port is where the operand listens. It is not the Service's, so that a wrong target is noticed.
	port = 11311
)

// startOperand runs memcached behind a Service, in a namespace that refuses Pods which are not restricted.
func startOperand(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ctx := t.Context()
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	app := map[string]string{"app": "operand"}
	_, err = client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "operand"},
		Spec: corev1.ServiceSpec{
			Selector: app,
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(port)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	operand := pod("operand", nodeimage.Operand, "memcached", "-p", fmt.Sprint(port))
	operand.Labels = app
	createPod(t, client, operand)
	waitForPods(t, client, namespace, func(pods []corev1.Pod) error { return allReady(pods) })
}

// runProbe runs a Pod that succeeds when the operand answers under the Service's name.
func runProbe(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	createPod(t, client, pod("probe", probeImage, "/netprobe", "operand."+namespace+":80", probeSeconds))
	waitForPods(t, client, namespace, func(pods []corev1.Pod) error {
		for _, p := range pods {
			switch {
			case p.Name != "probe":
			case p.Status.Phase == corev1.PodSucceeded:
				return nil
			case p.Status.Phase == corev1.PodFailed:
				return final{fmt.Errorf("the probe found no operand: %s", logs(t.Context(), client, p))}
			}
		}
		return errors.New("the probe has not ended")
	})
}

func logs(ctx context.Context, client kubernetes.Interface, p corev1.Pod) string {
	tail := &corev1.PodLogOptions{TailLines: new(int64(3))}
	text, err := client.CoreV1().Pods(p.Namespace).GetLogs(p.Name, tail).DoRaw(ctx)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// systemPodsRunWithoutRestart expects one each of CoreDNS, kube-proxy, and the four static Pods of a control plane.
func systemPodsRunWithoutRestart(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	const systemPods = 6
	waitForPods(t, client, metav1.NamespaceSystem, func(pods []corev1.Pod) error {
		if len(pods) < systemPods {
			return fmt.Errorf("%d Pods, want %d", len(pods), systemPods)
		}
		return allReady(pods)
	})
}

// final ends a wait: it cannot get better.
type final struct{ error }

// allReady says which Pod is not Ready, or had to be restarted though its API server was there.
func allReady(pods []corev1.Pod) error {
	for _, p := range pods {
		for _, c := range p.Status.ContainerStatuses {
			if c.RestartCount > 0 && !gaveUpTooEarly(pods, c) {
				return final{fmt.Errorf("%s restarted %d times: %+v", p.Name, c.RestartCount, c.LastTerminationState)}
			}
		}
		if !ready(p) {
			return fmt.Errorf("%s is %s and not Ready: %+v", p.Name, p.Status.Phase, p.Status.ContainerStatuses)
		}
	}
	return nil
}

// gaveUpTooEarly says whether a container was started again once, before the API server was ready. The controller
// manager waits 10 s for that and ends, as it does in every cluster; a machine with several clusters on two cores
// may take longer.
func gaveUpTooEarly(pods []corev1.Pod, c corev1.ContainerStatus) bool {
	ended := c.LastTerminationState.Terminated
	if c.RestartCount != 1 || ended == nil {
		return false
	}
	for _, p := range pods {
		if p.Labels["component"] != "kube-apiserver" {
			continue
		}
		since, ok := readySince(p)
		return ok && !ended.FinishedAt.After(since)
	}
	return false
}

func TestOnlyARestartBeforeTheAPIServerIsReadyIsForgiven(t *testing.T) {
	ready := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server := corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"component": "kube-apiserver"}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{
			Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(ready),
		}}},
	}
	for name, c := range map[string]struct {
		restarts int32
		ended    time.Time
		whole    bool
	}{
		"before":           {1, ready.Add(-time.Second), true},
		"after":            {1, ready.Add(time.Second), false},
		"twice before":     {2, ready.Add(-time.Second), false},
		"never, and ready": {0, ready.Add(time.Second), true},
	} {
		other := server
		other.Labels = nil
		other.Status.ContainerStatuses = []corev1.ContainerStatus{{
			RestartCount:         c.restarts,
			LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(c.ended)}},
		}}
		if err := allReady([]corev1.Pod{other, server}); (err == nil) != c.whole {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ready(p corev1.Pod) bool {
	_, ok := readySince(p)
	return ok && p.Status.Phase == corev1.PodRunning
}

// readySince says whether a Pod's condition is that it is Ready, and since when.
func readySince(p corev1.Pod) (time.Time, bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// pod is one that the restricted level of Pod security admits. Its user is that of the image.
func pod(name, image string, command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: name, Image: image, Command: command, ImagePullPolicy: corev1.PullNever,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					ReadOnlyRootFilesystem:   new(true),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}

func createPod(t *testing.T, client kubernetes.Interface, p *corev1.Pod) {
	t.Helper()
	if _, err := client.CoreV1().Pods(namespace).Create(t.Context(), p, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitForPods looks at the Pods of a namespace after each change, until holds returns nil.
func waitForPods(t *testing.T, client kubernetes.Interface, ns string, holds func([]corev1.Pod) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), podTimeout)
	defer cancel()
	pods := client.CoreV1().Pods(ns)
	for {
		list, err := pods.List(ctx, metav1.ListOptions{})
		if err != nil {
			t.Fatalf("list Pods of %s: %v", ns, err)
		}
		last := holds(list.Items)
		if last == nil {
			return
		}
		if _, hopeless := errors.AsType[final](last); hopeless {
			t.Fatalf("Pods of %s: %v", ns, last)
		}
		changes, err := pods.Watch(ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
		if err != nil {
			t.Fatalf("watch Pods of %s: %v", ns, err)
		}
		select {
		case <-changes.ResultChan():
			changes.Stop()
		case <-ctx.Done():
			changes.Stop()
			t.Fatalf("Pods of %s after %v: %v", ns, podTimeout, last)
		}
	}
}
