// Package imagetest shows that clusters made of the node image work. NODE_IMAGE chooses the node image, as it does for
// the labs.
package imagetest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/image"
	"github.com/example/operator-lab/clusters/nodeimage"
)

const (
	// sideBySide is the number of clusters that run at once, and atOnce how many are created at the same time.
	sideBySide, atOnce = 5, 2
	// podTimeout is how long Pods whose images are on the node may take on a busy machine.
	podTimeout = 90 * time.Second
	// podPoll is how often to look at them.
	podPoll = 100 * time.Millisecond
	// namespace refuses Pods that are not restricted.
	namespace = "network"
	// probeImage holds this test's own program, which plays a server and its client, and nothing else.
	probeImage = "operator-lab.local/netprobe:test"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "serve" {
		fmt.Println(http.ListenAndServe(os.Args[2], nil))
		os.Exit(1)
	}
	if len(os.Args) == 3 && os.Args[1] == "ask" {
		os.Exit(ask(os.Args[2]))
	}
	os.Exit(m.Run())
}

// ask returns when the URL answers.
func ask(url string) int {
	client := http.Client{Timeout: 2 * time.Second}
	for range time.Tick(200 * time.Millisecond) {
		resp, err := client.Get(url)
		if err == nil {
			_ = resp.Body.Close()
			break
		}
		fmt.Println(err)
	}
	return 0
}

// With too few inotify instances a fifth cluster looks created, and its Pods do not reach each other.
func TestFiveClustersSideBySide(t *testing.T) {
	state, err := filepath.Abs("../../../.lab")
	if err != nil {
		t.Fatal(err)
	}
	m, err := clusters.New(state, clusters.WithLogger(func(line string) { t.Log(line) }))
	if err != nil {
		t.Fatal(err)
	}
	node, err := nodeimage.Resolve(t.Context(), m.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	probe := probeArchive(t)
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	made := make([]*clusters.Cluster, sideBySide)
	for i := range made {
		group.Go(func() error {
			c, err := m.Create(ctx, clusters.Spec{Image: node.Ref})
			if err != nil {
				return err
			}
			t.Cleanup(func() {
				if err := m.Delete(context.WithoutCancel(t.Context()), c.Name); err != nil {
					t.Error(err)
				}
			})
			made[i] = c
			return m.Provider().LoadImageArchive(ctx, c.Name, probe)
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	t.Run("cluster", func(t *testing.T) { // returns when all of them are done
		for _, c := range made {
			t.Run(c.Name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), podTimeout)
				defer cancel()
				config, err := c.RESTConfig()
				if err != nil {
					t.Fatal(err)
				}
				client := kubernetes.NewForConfigOrDie(config)
				if err := errors.Join(reachByService(ctx, client), systemPods(ctx, client)); err != nil {
					t.Error(err)
				}
			})
		}
	})
}

// probeArchive builds the image of the probe.
func probeArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "probe"), filepath.Join(dir, "probe.tar")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the probe: %v\n%s", err, out)
	}
	if err := image.WriteProgram(archive, probeImage, program); err != nil {
		t.Fatal(err)
	}
	return archive
}

// reachByService has a Pod reach a server in another one by the name of a Service.
func reachByService(ctx context.Context, client kubernetes.Interface) error {
	_, err := client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "restricted"},
	}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	// The Service's port is not the server's, so that a wrong target is noticed.
	_, err = client.CoreV1().Services(namespace).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "server"},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"name": "server"},
			Ports:    []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(8080)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	if err := runPod(ctx, client, "server", corev1.PodRunning, "serve", ":8080"); err != nil {
		return err
	}
	return runPod(ctx, client, "probe", corev1.PodSucceeded, "ask", "http://server."+namespace)
}

// runPod runs the probe, as the restricted level of Pod security admits it, until the Pod is in that phase.
func runPod(ctx context.Context, client kubernetes.Interface, name string, phase corev1.PodPhase, args ...string) error {
	_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"name": name}},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot:   new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: name, Image: probeImage, Args: args, ImagePullPolicy: corev1.PullNever,
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	var last corev1.PodStatus
	err = wait.PollUntilContextCancel(ctx, podPoll, true, func(ctx context.Context) (bool, error) {
		p, err := client.CoreV1().Pods(namespace).Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			last = p.Status
		}
		return last.Phase == phase, err
	})
	if err != nil {
		return fmt.Errorf("await that Pod %s is %s: %w: %+v", name, phase, err, last)
	}
	return nil
}

// systemPods waits for CoreDNS, kube-proxy, and the four static Pods of a control plane. The controller manager may have
// been started again: it ends when the API server takes longer than 10 s.
func systemPods(ctx context.Context, client kubernetes.Interface) error {
	var pods *corev1.PodList
	err := wait.PollUntilContextCancel(ctx, podPoll, true, func(ctx context.Context) (_ bool, err error) {
		pods, err = client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		return err == nil && !slices.ContainsFunc(pods.Items, func(p corev1.Pod) bool {
			return !slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			})
		}), err
	})
	if err != nil || len(pods.Items) != 6 {
		return fmt.Errorf("await six Pods that are Ready: %w: %+v", err, pods)
	}
	for _, p := range pods.Items {
		restarts := p.Status.ContainerStatuses[0].RestartCount
		if restarts > 0 && p.Labels["component"] != "kube-controller-manager" {
			return fmt.Errorf("%s was restarted %d times", p.Name, restarts)
		}
	}
	return nil
}
