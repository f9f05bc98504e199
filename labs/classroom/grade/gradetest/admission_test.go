//go:build linux

package gradetest

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
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

// startAPI starts a cluster for the test, and returns its admin's configuration.
func startAPI(t *testing.T) *rest.Config {
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
	return config
}

// pod is one that a right operator's Deployment makes, with an edit.
func pod(edit func(*corev1.PodSpec, *corev1.Container)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: metav1.NamespaceDefault},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: new(false),
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: new(true), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				Sysctls: []corev1.Sysctl{{Name: "net.ipv4.ip_unprivileged_port_start", Value: "0"}}},
			Containers: []corev1.Container{{
				Name: "memcached", Image: operand, Command: []string{"memcached", "-m=64"},
				Ports: []corev1.ContainerPort{{ContainerPort: 11211}},
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
	edit(&p.Spec, &p.Spec.Containers[0])
	return p
}

// mount gives the container a volume.
func mount(s *corev1.PodSpec, c *corev1.Container, path string, source corev1.VolumeSource) {
	s.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "v", MountPath: path}}
}

// mounting gives it an empty folder.
func mounting(path string) func(*corev1.PodSpec, *corev1.Container) {
	return func(s *corev1.PodSpec, c *corev1.Container) {
		mount(s, c, path, corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
	}
}

func probe(handler corev1.ProbeHandler) *corev1.Probe { return &corev1.Probe{ProbeHandler: handler} }

func TestPodPolicy(t *testing.T) {
	c, err := client.New(startAPI(t), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := apiproxy.InstallPodPolicy(t.Context(), c, operand); err != nil {
		t.Fatal(err)
	}
	type edit = func(*corev1.PodSpec, *corev1.Container)
	for name, right := range map[string]edit{
		"as the lessons have it": func(*corev1.PodSpec, *corev1.Container) {},
		"without anything": func(s *corev1.PodSpec, c *corev1.Container) {
			s.SecurityContext, c.SecurityContext, c.Command, c.Ports = nil, nil, nil, nil
		},
		"with arguments": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Command, c.Args = nil, []string{"-m", "64", "-vv", "--memory-limit=64", "-o", "modern", "--extended", "idle_timeout=60"}
		},
		"with probes": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.ReadinessProbe = probe(corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(11211)}})
			c.LivenessProbe = c.ReadinessProbe
		},
		"with a user": func(s *corev1.PodSpec, c *corev1.Container) {
			s.SecurityContext.RunAsUser, c.SecurityContext.RunAsUser = new(int64(11211)), new(int64(65532))
		},
		"with a folder of its own":    mounting("/tmp/cache"),
		"with a folder for its state": mounting("/run"),
		"with its port in a variable": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "PORT", Value: "11211"}, {Name: "EMPTY"}}
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
		"a file of its own over a program": func(s *corev1.PodSpec, c *corev1.Container) {
			mount(s, c, "/usr/bin/memcached", corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}, DefaultMode: new(int32(0o755))}})
		},
		"a Secret": func(s *corev1.PodSpec, c *corev1.Container) {
			mount(s, c, "/run/v", corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})
		},
		"a token": func(s *corev1.PodSpec, c *corev1.Container) {
			mount(s, c, "/run/v", corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			}}})
		},
		"the token of its ServiceAccount": func(s *corev1.PodSpec, _ *corev1.Container) { s.AutomountServiceAccountToken = nil },
		"a folder over its programs":      mounting("/usr/bin"),
		"a folder that turns back":        mounting("/tmp/../usr/bin"),
		"a folder that only begins so":    mounting("/variable"),
		"a message over a file of its own": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.TerminationMessagePath = "/etc/ld.so.preload"
		},
		"a library of its own": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "ANYTHING", Value: "/tmp/evil.so"}}
		},
		"a library with a number": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "1"}}
		},
		"a path of programs": func(_ *corev1.PodSpec, c *corev1.Container) { c.Env = []corev1.EnvVar{{Name: "PATH", Value: "1"}} },
		"a variable from elsewhere": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "PORT", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}}}
		},
		"variables from elsewhere": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}}
		},
		"all rights": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext = &corev1.SecurityContext{Privileged: new(true)}
		},
		"a capability": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext.Capabilities.Add = []corev1.Capability{"SYS_ADMIN"}
		},
		"more rights later":          func(_ *corev1.PodSpec, c *corev1.Container) { c.SecurityContext.AllowPrivilegeEscalation = new(true) },
		"root as its user":           func(s *corev1.PodSpec, _ *corev1.Container) { s.SecurityContext.RunAsUser = new(int64(0)) },
		"root as a container's user": func(_ *corev1.PodSpec, c *corev1.Container) { c.SecurityContext.RunAsUser = new(int64(0)) },
		"all system calls": func(s *corev1.PodSpec, _ *corev1.Container) {
			s.SecurityContext.SeccompProfile.Type = corev1.SeccompProfileTypeUnconfined
		},
		"all system calls for a container": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext.SeccompProfile = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeUnconfined}
		},
		"no AppArmor": func(s *corev1.PodSpec, _ *corev1.Container) {
			s.SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeUnconfined}
		},
		"a label of SELinux": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.SecurityContext.SELinuxOptions = &corev1.SELinuxOptions{Type: "spc_t"}
		},
		"a file for its memory": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Command = []string{"memcached", "-m=4096", "-e", "/data/x"}
		},
		"a file in one word": func(_ *corev1.PodSpec, c *corev1.Container) { c.Command, c.Args = nil, []string{"-ve/data/x"} },
		"a file by a long name": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Command, c.Args = nil, []string{"--memory-file=/data/x"}
		},
		"a file beside memory": func(_ *corev1.PodSpec, c *corev1.Container) { c.Args = []string{"-o", "ext_path=/data/x:64G"} },
		"a program of its own": func(_ *corev1.PodSpec, c *corev1.Container) { c.Args = []string{"-o", "proxy_config=/etc/hosts"} },
		"a word that a variable hides": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env, c.Command, c.Args = []corev1.EnvVar{{Name: "E"}}, nil, []string{"-m=4096", "-$(E)e", "/data/x"}
		},
		"a long word that a variable hides": func(_ *corev1.PodSpec, c *corev1.Container) {
			c.Env, c.Args = []corev1.EnvVar{{Name: "E"}}, []string{"-o", "ext$(E)_path=/data/x:64G"}
		},
		"a folder of the runtime's": func(_ *corev1.PodSpec, c *corev1.Container) { c.WorkingDir = "/proc/self/fd/8" },
		"a place before others":     func(s *corev1.PodSpec, _ *corev1.Container) { s.PriorityClassName = "system-node-critical" },
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
		if err := c.Create(t.Context(), pod(wrong), client.DryRunAll); !refused(err, "lab-pod-policy") {
			t.Errorf("a Pod with %s: %v", name, err)
		}
	}
	for kind, object := range templates() {
		t.Run(kind, func(t *testing.T) {
			for name, right := range map[string]edit{
				"as the lessons have it": func(*corev1.PodSpec, *corev1.Container) {},
				"another image":          func(_ *corev1.PodSpec, c *corev1.Container) { c.Image = "example.test/drifted" },
			} {
				if err := c.Create(t.Context(), object(pod(right).Spec), client.DryRunAll); err != nil {
					t.Errorf("%s is refused: %v", name, err)
				}
			}
			for name, wrong := range map[string]edit{
				"a library of its own": func(_ *corev1.PodSpec, c *corev1.Container) {
					c.Env = []corev1.EnvVar{{Name: "LD_PRELOAD", Value: "/tmp/evil.so"}}
				},
				"the node's processes": func(s *corev1.PodSpec, _ *corev1.Container) { s.HostPID = true },
			} {
				if err := c.Create(t.Context(), object(pod(wrong).Spec), client.DryRunAll); !refused(err, "lab-pod-policy") {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
	service := func(addresses ...string) *corev1.Service {
		return &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Name: "s", Namespace: metav1.NamespaceDefault},
			Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 11211}}, ExternalIPs: addresses},
		}
	}
	if err := c.Create(t.Context(), service(), client.DryRunAll); err != nil {
		t.Errorf("a Service is refused: %v", err)
	}
	if err := c.Create(t.Context(), service("192.0.2.1"), client.DryRunAll); !refused(err, "lab-service-policy") {
		t.Errorf("a Service with an address of somebody else: %v", err)
	}
}

func refused(err error, policy string) bool {
	return err != nil && strings.Contains(err.Error(), policy)
}

// templates are all kinds of objects that Pods are made from.
func templates() map[string]func(corev1.PodSpec) client.Object {
	meta := metav1.ObjectMeta{Name: "o", Namespace: metav1.NamespaceDefault, Labels: map[string]string{"app": "o"}}
	selector := &metav1.LabelSelector{MatchLabels: meta.Labels}
	template := func(s corev1.PodSpec) corev1.PodTemplateSpec {
		return corev1.PodTemplateSpec{ObjectMeta: meta, Spec: s}
	}
	once := func(s corev1.PodSpec) batchv1.JobSpec {
		s.RestartPolicy = corev1.RestartPolicyNever
		return batchv1.JobSpec{Template: template(s)}
	}
	return map[string]func(corev1.PodSpec) client.Object{
		"Deployment": func(s corev1.PodSpec) client.Object {
			return &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Selector: selector, Template: template(s)}}
		},
		"ReplicaSet": func(s corev1.PodSpec) client.Object {
			return &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Selector: selector, Template: template(s)}}
		},
		"StatefulSet": func(s corev1.PodSpec) client.Object {
			return &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{Selector: selector, Template: template(s)}}
		},
		"DaemonSet": func(s corev1.PodSpec) client.Object {
			return &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{Selector: selector, Template: template(s)}}
		},
		"ReplicationController": func(s corev1.PodSpec) client.Object {
			return &corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Selector: meta.Labels, Template: new(template(s))}}
		},
		"PodTemplate": func(s corev1.PodSpec) client.Object {
			return &corev1.PodTemplate{ObjectMeta: meta, Template: template(s)}
		},
		"Job": func(s corev1.PodSpec) client.Object { return &batchv1.Job{ObjectMeta: meta, Spec: once(s)} },
		"CronJob": func(s corev1.PodSpec) client.Object {
			return &batchv1.CronJob{ObjectMeta: meta, Spec: batchv1.CronJobSpec{Schedule: "@daily", JobTemplate: batchv1.JobTemplateSpec{Spec: once(s)}}}
		},
	}
}
