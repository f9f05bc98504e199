package judgetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// root is the checkout.
	root = "../../../.."
	// namespace enforces the Pod Security level "baseline".
	namespace = "judge"
	// judging is said once a Pod runs.
	judging = "the judge: it is judging"
)

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(m.Run())
}

// TestHostedVerdicts has one host, because the image takes minutes.
func TestHostedVerdicts(t *testing.T) {
	c, err := course.Load(absolute(t, root))
	if err != nil {
		t.Fatal(err)
	}
	cache, err := components.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	h := newHost(t, c, cache)
	t.Run("a learner keeps the judges of others from nothing", h.leavesOthersAlone)
	t.Run("a Pod judges as at home", func(t *testing.T) { h.judgesAsAtHome(t, cache) })
	t.Run("a Pod that is lost costs no verdict", h.replacesALostPod)
	t.Run("nothing is left of a verdict that nobody waits for", h.leavesNothing)
	t.Run("an image that no node has is said", h.saysThatTheImageIsMissing)
	t.Run("a node that dies is no fail", h.survivesItsNode) // the last one: the node stays dead
}

// host is a cluster that judges.
type host struct {
	*course.Course
	kubernetes.Interface
	engine     string
	name       string
	kubeconfig string
}

// node runs a command on the node.
func (h host) node(ctx context.Context, stdin string, command ...string) error {
	cmd := exec.CommandContext(ctx, h.engine, append([]string{"exec", "--interactive", h.name + "-control-plane"}, command...)...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s on the node: %w: %s", command[0], err, out)
	}
	return nil
}

// judgesAsAtHome compares verdicts of the same workspaces, check by check.
func (h host) judgesAsAtHome(t *testing.T, cache string) {
	atHome := judgeAtHome(t, h.Course, cache)
	for _, lab := range []int{4, 5, 7} {
		for stage, want := range map[int]verdict.Verdict{lab - 1: verdict.Fail, lab: verdict.Pass} {
			t.Run(fmt.Sprintf("stage %d in lab %d", stage, lab), func(t *testing.T) {
				workspace := h.workspace(t, stage)
				begun := time.Now()
				there, err := h.judges(t).Check(t.Context(), workspace, hosted.Request{Lab: lab})
				if err != nil {
					t.Fatal(err)
				}
				t.Logf("%.1f s with the Job, %.1f s in the Pod", time.Since(begun).Seconds(), there.Seconds)
				here := atHome(lab, workspace)
				t.Logf("%.1f s at home: %s %s", here.Seconds, here.Verdict, here.Environment.Finding)
				if there.Verdict != want {
					t.Errorf("%s, want %s: %+v", there.Verdict, want, there)
				}
				if diff := cmp.Diff(told(here), told(there)); diff != "" {
					t.Errorf("-at home +in a Pod:\n%s", diff)
				}
			})
		}
	}
}

// leavesOthersAlone tries Pods that would keep the judges of others from their nodes.
func (h host) leavesOthersAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		edit    func(*corev1.PodSpec)
		refuses string // says why
	}{
		"a plain Pod":         {func(*corev1.PodSpec) {}, ""},
		"one with a priority": {func(s *corev1.PodSpec) { s.PriorityClassName = "system-cluster-critical" }, "quota: no-priority"},
		"one that bears no others": {func(s *corev1.PodSpec) {
			s.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelOSStable, NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{},
			}}}}
		}, "quota: no-others"},
		"one that takes much disk": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits[corev1.ResourceEphemeralStorage] = resource.MustParse("5Gi")
		}, "maximum ephemeral-storage"},
		"one that does not say how much": {func(s *corev1.PodSpec) { delete(s.Containers[0].Resources.Limits, corev1.ResourceEphemeralStorage) }, ""},
		"one with much memory": {func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits[corev1.ResourceMemory] = resource.MustParse("9Gi")
		}, "quota: own"},
	} {
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "tried"},
			Spec: corev1.PodSpec{
				SecurityContext: &corev1.PodSecurityContext{
					RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](65532), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
				},
				Containers: []corev1.Container{{
					Name: "tried", Image: "tried",
					Resources: corev1.ResourceRequirements{
						Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("1Gi")},
						Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("1Gi")},
					},
					SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
				}},
			},
		}
		tc.edit(&pod.Spec)
		made, err := h.CoreV1().Pods(namespace).Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		switch {
		case tc.refuses != "" && (!apierrors.IsForbidden(err) || !strings.Contains(err.Error(), tc.refuses)), tc.refuses == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case err == nil && made.Spec.Containers[0].Resources.Limits.StorageEphemeral().IsZero():
			t.Errorf("%s has no limit of disk", name)
		}
	}
}

// replacesALostPod deletes the judge while the checks run.
func (h host) replacesALostPod(t *testing.T) {
	judges, lost := h.judges(t), false
	judges.Progress = func(line string) {
		t.Log(line)
		if line == judging && !lost {
			lost = true
			if err := h.CoreV1().Pods(namespace).DeleteCollection(t.Context(), metav1.DeleteOptions{GracePeriodSeconds: ptr.To[int64](0)}, metav1.ListOptions{}); err != nil {
				t.Error(err)
			}
		}
	}
	result, err := judges.Check(t.Context(), h.workspace(t, 4), hosted.Request{Lab: 4})
	if err != nil {
		t.Fatal(err)
	}
	if !lost || result.Verdict != verdict.Pass {
		t.Errorf("lost %v, %+v", lost, result)
	}
}

// leavesNothing gives up while the checks run.
func (h host) leavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	judges := h.judges(t)
	judges.Progress = func(line string) {
		t.Log(line)
		if line == judging {
			cancel()
		}
	}
	if _, err := judges.Check(ctx, h.workspace(t, 4), hosted.Request{Lab: 4}); !errors.Is(err, context.Canceled) {
		t.Errorf("Check() = %v, want %v", err, context.Canceled)
	}
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		jobs, err1 := h.BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
		pods, err2 := h.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
		secrets, err3 := h.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{})
		if err := errors.Join(err1, err2, err3); err != nil {
			return false, err
		}
		return len(jobs.Items)+len(pods.Items)+len(secrets.Items) == 0, nil
	})
	if err != nil {
		t.Errorf("something is left after a minute: %v", err)
	}
}

func (h host) saysThatTheImageIsMissing(t *testing.T) {
	judges := h.judges(t)
	judges.Image = "operator-lab.local/none:1"
	_, err := judges.Check(t.Context(), h.workspace(t, 4), hosted.Request{Lab: 4})
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Error(), judges.Image) {
		t.Errorf("Check() = %v, want a Problem that names the image", err)
	}
}

// survivesItsNode kills the node while the checks run. This cluster has one, so its API server is gone, too.
func (h host) survivesItsNode(t *testing.T) {
	judges := h.judges(t)
	judges.Progress = func(line string) {
		t.Log(line)
		if line == judging {
			if out, err := exec.CommandContext(t.Context(), h.engine, "kill", h.name+"-control-plane").CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		}
	}
	result, err := judges.Check(t.Context(), h.workspace(t, 3), hosted.Request{Lab: 4})
	if _, ok := errors.AsType[*clusters.Problem](err); !ok {
		t.Errorf("Check() = %+v, %v; want a Problem", result, err)
	}
}

// workspace writes a stage of the course.
func (h host) workspace(t *testing.T, stage int) string {
	t.Helper()
	tree, err := h.Render(stage)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := tree.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func (h host) judges(t *testing.T) *hosted.Judges {
	return &hosted.Judges{
		Client: h, Namespace: namespace, Image: hosted.ImageRef, Progress: func(line string) { t.Log(line) },
		HostUsers: true, // the runc of our node image is Debian's, which has no user namespaces
	}
}

// told is what a result says of each check. Whether one that is blocked was asked, and has a cause, depends on the time.
func told(r *verdict.Result) (all []string) {
	for _, c := range r.Checks {
		line := fmt.Sprintf("%s %s %s", c.ID, c.State, c.BlockedBy)
		if c.State == verdict.Failed {
			line += c.Cause
		}
		all = append(all, line)
	}
	return all
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// newHost makes a kind cluster that has the judge's image.
func newHost(t *testing.T, c *course.Course, cache string) host {
	t.Helper()
	manager, err := clusters.New(t.TempDir(), clusters.WithLogger(func(line string) { t.Log(line) }))
	if err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	progress := func(line string) { t.Log(line) }
	kit, err := judge.NewKit(t.Context(), c, t.TempDir(), cache, progress)
	if err != nil {
		t.Fatal(err)
	}
	if err := kit.Build(t.Context(), manager.Engine(), hosted.ImageRef); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(t.TempDir(), "judge.tar")
	if out, err := exec.CommandContext(t.Context(), manager.Engine(), "save", "--output", archive, hosted.ImageRef).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if info, err := os.Stat(archive); err == nil {
		t.Logf("the image has %d MB, and was made in %.0f s", info.Size()/1e6, time.Since(begun).Seconds())
	}
	node, err := nodeimage.Resolve(t.Context(), manager.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := manager.Create(t.Context(), clusters.Spec{Image: node.Ref})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := manager.Delete(context.WithoutCancel(t.Context()), cluster.Name); err != nil {
			t.Error(err)
		}
	})
	begun = time.Now()
	if err := manager.Provider().LoadImageArchive(t.Context(), cluster.Name, archive); err != nil {
		t.Fatal(err)
	}
	t.Logf("loaded in %.0f s", time.Since(begun).Seconds())
	h := host{Course: c, engine: manager.Engine(), name: cluster.Name, kubeconfig: cluster.Kubeconfig}
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if h.Interface, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	baseline := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		Name: namespace, Labels: map[string]string{"pod-security.kubernetes.io/enforce": "baseline"},
	}}
	if _, err := h.CoreV1().Namespaces().Create(t.Context(), baseline, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	// The network plugin of our nodes enforces no policies. These rules are what the namespace's policy says.
	const policy = "for chain in INPUT FORWARD; do iptables -w -I $chain -s 10.244.0.0/16 -m conntrack --ctstate NEW -j DROP; done"
	if err := h.node(t.Context(), "", "sh", "-c", policy); err != nil {
		t.Fatal(err)
	}
	learners, err := os.ReadFile(filepath.Join(c.Root, "labs", "hosted", "namespace.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := h.node(t.Context(), string(learners), "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf", "apply", "--namespace", namespace, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	return h
}

// judgeAtHome gives what judges on an embedded control plane of this machine.
func judgeAtHome(t *testing.T, c *course.Course, cache string) func(lab int, workspace string) *verdict.Result {
	t.Helper()
	state := t.TempDir()
	home, err := embedded.NewManager(state, cache, nil)
	if err != nil {
		t.Fatal(err)
	}
	tools, err := verdict.BuildTools(t.Context(), c.Root, state)
	if err != nil {
		t.Fatal(err)
	}
	return func(lab int, workspace string) *verdict.Result {
		judge := verdict.Judge{
			Course: c, State: state, Cache: cache, Workspace: workspace, Clusters: home,
			Tools: tools, Progress: func(string) {},
		}
		results, err := judge.Check(t.Context(), []int{lab})
		if err != nil {
			t.Fatal(err)
		}
		return results[0]
	}
}
