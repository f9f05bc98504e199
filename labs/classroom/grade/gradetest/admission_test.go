//go:build linux

package gradetest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// TestMain is also what a cluster of processes needs: their parent.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == embedded.SuperviseCommand {
		if err := embedded.Supervise(os.Args[2]); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const operand = "operator-lab.local/memcached:test"

// api is the API server of a cluster of its own.
func api(t *testing.T) client.Client {
	t.Helper()
	cache, err := clusters.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	state := t.TempDir()
	provider, err := embedded.New(state, root, cache)
	if err != nil {
		t.Fatal(err)
	}
	if err := provider.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	owned := clusters.NewOwned(state, provider)
	cluster, err := owned.Create(t.Context(), "test", clusters.Spec{}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer cancel()
		if err := owned.Delete(ctx, cluster.Name); err != nil {
			t.Error(err)
		}
	})
	config, err := clusters.RESTConfig(cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pod is one that a right operator's Deployment makes, with an edit.
func pod(edit func(*corev1.PodSpec, *corev1.Container)) *corev1.Pod {
	yes, no := true, false
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}},
			Containers: []corev1.Container{{
				Name: "memcached", Image: operand, Command: []string{"memcached", "-m=64"},
				Ports: []corev1.ContainerPort{{ContainerPort: 11211}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	edit(&p.Spec, &p.Spec.Containers[0])
	return p
}

func probe(handler corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: handler} }

func TestPodPolicy(t *testing.T) {
	c := api(t)
	if err := apiproxy.InstallPodPolicy(t.Context(), c, operand); err != nil {
		t.Fatal(err)
	}
	yes := true
	type edit = func(*corev1.PodSpec, *corev1.Container)
	for name, right := range map[string]edit{
		"as the lessons have it": func(*corev1.PodSpec, *corev1.Container) {},
		"without anything": func(s *corev1.PodSpec, c *corev1.Container) {
			s.SecurityContext, c.SecurityContext, c.Command, c.Ports = nil, nil, nil, nil
		},
		"with arguments": func(_ *corev1.PodSpec, c *corev1.Container) { c.Command, c.Args = nil, []string{"-m", "64"} },
		"with probes": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.ReadinessProbe = probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(11211)}})
			c.LivenessProbe = c.ReadinessProbe
		},
		"with a folder of its own": func(s *corev1.PodSpec, _ *corev1.Container) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
		},
	} {
		if err := c.Create(t.Context(), pod(right), client.DryRunAll); err != nil {
			t.Errorf("a Pod %s is refused: %v", name, err)
		}
	}
	for name, wrong := range map[string]edit{
		"another image": func(_ *corev1.PodSpec, c *corev1.Container) { c.Image = "example.test/shell" },
		"a first container": func(s *corev1.PodSpec, c *corev1.Container) {
			s.InitContainers = []corev1.Container{{Name: "i", Image: "example.test/shell"}}
		},
		"a shell":              func(_ *corev1.PodSpec, c *corev1.Container) { c.Command = []string{"/bin/sh", "-c", "id"} },
		"a shell as argument":  func(_ *corev1.PodSpec, c *corev1.Container) { c.Command, c.Args = nil, []string{"/bin/sh"} },
		"the node's network":   func(s *corev1.PodSpec, _ *corev1.Container) { s.HostNetwork, s.SecurityContext = true, nil },
		"the node's processes": func(s *corev1.PodSpec, _ *corev1.Container) { s.HostPID = true },
		"the node's memory":    func(s *corev1.PodSpec, _ *corev1.Container) { s.HostIPC = true },
		"a port of the node":   func(_ *corev1.PodSpec, c *corev1.Container) { c.Ports[0].HostPort = 80 },
		"a folder of the node": func(s *corev1.PodSpec, _ *corev1.Container) {
			s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
		},
		"all rights": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{Privileged: &yes}
		},
		"a capability": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		},
		"a hook": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Lifecycle = &corev1.Lifecycle{PostStart: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{"id"}}}}
		},
		"a probe that runs a program": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.LivenessProbe = probe(corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"id"}}})
		},
		"a probe of another host": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.StartupProbe = probe(corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Host: "169.254.169.254", Port: intstr.FromInt32(80)}})
		},
	} {
		if err := c.Create(t.Context(), pod(wrong), client.DryRunAll); err == nil || !strings.Contains(err.Error(), "lab-pod-policy") {
			t.Errorf("a Pod with %s: %v", name, err)
		}
	}
}
