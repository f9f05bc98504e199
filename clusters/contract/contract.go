// Package contract holds what every clusters.Provider must do, as tests that a
// provider's own tests call. They make real clusters.
package contract

import (
	"context"
	"crypto/rand"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
)

// createTimeout is more than any provider needs, so that a test that hangs fails
// with its own words and not with those of the test binary.
const createTimeout = 10 * time.Minute

// Test runs the contract on a provider. The state directory of the provider must
// be the test's own, and spec must be one that the provider can make at once.
func Test(t *testing.T, p clusters.Provider, spec clusters.Spec) {
	s := &suite{provider: p, spec: spec, home: snapshot(t)}
	t.Run("deleting a cluster that does not exist is no error", s.deleteAbsent)
	t.Run("a name that cannot be one is refused", s.badName)
	s.create(t)
	t.Run("a new cluster is ready and healthy", s.healthy)
	t.Run("a new cluster is fresh", s.fresh)
	t.Run("its kubeconfig is private", s.kubeconfig)
	t.Run("it is listed under exactly its name", s.listed)
	t.Run("its name cannot be used twice", s.nameTaken)
	t.Run("deleting similar names leaves it alone", s.similarNames)
	t.Run("images of an archive can be used by Pods", s.images)
	if restarter, ok := p.(clusters.ControllerRestarter); ok { // which nobody has to be
		t.Run("garbage of a new kind is collected after a restart of the controllers", func(t *testing.T) { s.collection(t, restarter) })
	}
	t.Run("logs are collected", s.logs)
	t.Run("nothing is left of it after its deletion", s.deleted)
	t.Run("nothing is left of a creation that was cancelled", s.cancelled)
	t.Run("the user's own kubeconfig is what it was", s.homeUntouched)
}

type suite struct {
	provider clusters.Provider
	spec     clusters.Spec
	home     map[string]string

	cluster *clusters.Cluster
	took    time.Duration
}

// newName is one that nobody else uses.
func newName() string { return clusters.NewName("contract") }

// create makes the cluster that most of the contract is about, and removes it
// however the test ends.
func (s *suite) create(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), createTimeout)
	defer cancel()
	n := newName()
	t.Cleanup(func() { s.remove(t, n) })
	start := time.Now()
	c, err := s.provider.Create(ctx, n, s.spec)
	if err != nil {
		t.Fatal(err)
	}
	s.took = time.Since(start)
	t.Logf("%s is ready after %v: %+v", n, s.took.Round(100*time.Millisecond), *c)
	if c.Name != n || c.Provider == "" || !strings.HasPrefix(c.Version, "v1.") || c.Nodes != 1+s.spec.Workers {
		t.Errorf("cluster = %+v, want its name, provider, version and %d nodes", *c, 1+s.spec.Workers)
	}
	s.cluster = c
}

func (s *suite) remove(t *testing.T, name string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	if err := s.provider.Delete(ctx, name); err != nil {
		t.Errorf("Delete(%s): %v", name, err)
	}
}

func client(t *testing.T, c *clusters.Cluster) *kubernetes.Clientset {
	t.Helper()
	config, err := clusters.RESTConfig(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

func (s *suite) list(t *testing.T) []string {
	t.Helper()
	names, err := s.provider.List(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func (s *suite) deleteAbsent(t *testing.T) {
	if err := s.provider.Delete(t.Context(), newName()); err != nil {
		t.Errorf("Delete() = %v, want nil", err)
	}
}

func (s *suite) badName(t *testing.T) {
	for _, bad := range []string{"", "Upper", "../up", "with space", strings.Repeat("a", 64)} {
		if _, err := s.provider.Create(t.Context(), bad, s.spec); err == nil {
			t.Errorf("Create(%q) = nil error, want a refusal", bad)
		}
	}
}

func (s *suite) healthy(t *testing.T) {
	// One look: a wait would hide that it was handed out too early, and a time limit would blame it for a busy machine.
	missing, err := clusters.Unready(t.Context(), s.cluster.Kubeconfig, s.cluster.Readiness())
	if err != nil || len(missing) > 0 {
		t.Errorf("handed out before it was ready: %v, %s", err, strings.Join(missing, "; "))
	}
	if err := clusters.Healthy(t.Context(), s.provider, s.cluster); err != nil {
		t.Errorf("Healthy() = %v, want nil", err)
	}
}

func (s *suite) fresh(t *testing.T) {
	client := client(t, s.cluster)
	groups, err := discovery.NewDiscoveryClient(client.RESTClient()).ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups.Groups {
		if strings.Contains(group.Name, ".") && !strings.HasSuffix(group.Name, ".k8s.io") {
			t.Errorf("the cluster serves %s, which is not Kubernetes' own", group.Name)
		}
	}
	namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	system := []string{"default", "kube-node-lease", "kube-public", "kube-system", "local-path-storage"}
	for _, namespace := range namespaces.Items {
		if !slices.Contains(system, namespace.Name) {
			t.Errorf("the cluster has a namespace %s", namespace.Name)
		}
	}
	pods, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(pods.Items) > 0 {
		t.Errorf("%d Pods run in the namespace default", len(pods.Items))
	}
}

func (s *suite) kubeconfig(t *testing.T) {
	info, err := os.Stat(s.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(s.cluster.Kubeconfig) || info.Mode().Perm() != 0o600 {
		t.Errorf("kubeconfig %s has mode %v, want an absolute path and 0600", s.cluster.Kubeconfig, info.Mode())
	}
	config, err := clusters.RESTConfig(s.cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(config.Host, "https://127.0.0.1:") {
		t.Errorf("the API server is at %s, want it on loopback only", config.Host)
	}
}

func (s *suite) listed(t *testing.T) {
	if names := s.list(t); !slices.Contains(names, s.cluster.Name) {
		t.Errorf("List() = %v, want %s in it", names, s.cluster.Name)
	}
}

func (s *suite) nameTaken(t *testing.T) {
	if _, err := s.provider.Create(t.Context(), s.cluster.Name, s.spec); err == nil {
		t.Error("Create() = nil error for a name that is taken: the cluster is not fresh")
	}
	if err := clusters.Healthy(t.Context(), s.provider, s.cluster); err != nil {
		t.Errorf("the refused creation harmed the cluster: %v", err)
	}
}

func (s *suite) similarNames(t *testing.T) {
	n := s.cluster.Name
	for _, similar := range []string{n[:len(n)-1], n + "0", "0" + n} {
		if err := s.provider.Delete(t.Context(), similar); err != nil {
			t.Errorf("Delete(%s) = %v, want nil: there is no such cluster", similar, err)
		}
	}
	if err := clusters.Healthy(t.Context(), s.provider, s.cluster); err != nil {
		t.Error(err)
	}
}

func (s *suite) images(t *testing.T) {
	if err := s.provider.LoadImageArchive(t.Context(), s.cluster.Name, filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("LoadImageArchive() = nil error for a file that does not exist")
	}
	if s.cluster.RealPods {
		Images(t, s.provider, s.cluster)
	}
}

// Images checks that LoadImageArchive reaches every node of a cluster with real
// Pods. It loads an image without a program to run and looks how a Pod of it fails:
// a node that lacks the image would say ErrImageNeverPull.
func Images(t *testing.T, p clusters.Provider, c *clusters.Cluster) {
	t.Helper()
	ref, archive := otherImage(t)
	if err := p.LoadImageArchive(t.Context(), c.Name, archive); err != nil {
		t.Fatal(err)
	}
	client := client(t, c)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range nodes.Items {
		if reason := podFailure(t, client, node.Name, ref); reason == "ErrImageNeverPull" {
			t.Errorf("node %s does not have the image", node.Name)
		}
	}
}

// podFailure starts a Pod of an image without a program on a node and returns
// why it does not run.
func podFailure(t *testing.T, client *kubernetes.Clientset, node, image string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	pods := client.CoreV1().Pods("default")
	pod, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "image-"},
		Spec: corev1.PodSpec{
			NodeName:      node,
			RestartPolicy: corev1.RestartPolicyNever,
			Containers: []corev1.Container{{
				Name: "c", Image: image, Command: []string{"/none"}, ImagePullPolicy: corev1.PullNever,
			}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	reason := ""
	err = clusters.WaitForPod(ctx, client, pod.Namespace, pod.Name, func(pod *corev1.Pod) bool {
		reason = failureReason(pod)
		return reason != ""
	})
	if err != nil {
		t.Fatalf("Pod of %s on node %s shows no reason for its failure: %v", image, node, err)
	}
	return reason
}

// failureReason says why the Pod's container does not run, "" while that is not
// known.
func failureReason(pod *corev1.Pod) string {
	for _, status := range pod.Status.ContainerStatuses {
		switch {
		case status.State.Terminated != nil:
			return status.State.Terminated.Reason
		case status.State.Waiting != nil && status.State.Waiting.Reason != "ContainerCreating":
			return status.State.Waiting.Reason
		}
	}
	return ""
}

// otherImage writes an image that no node has, and returns its name and the archive.
func otherImage(t *testing.T) (ref, archive string) {
	t.Helper()
	dir := t.TempDir()
	content := filepath.Join(dir, "content")
	if err := os.WriteFile(content, []byte(rand.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	ref, archive = "operator-lab.local/contract:"+strings.ToLower(rand.Text()), filepath.Join(dir, "image.tar")
	if err := clusters.WriteProgramImage(archive, ref, content); err != nil {
		t.Fatal(err)
	}
	return ref, archive
}

func (s *suite) logs(t *testing.T) {
	if !s.cluster.Logs {
		return
	}
	dir := filepath.Join(t.TempDir(), "logs")
	if err := s.provider.CollectLogs(t.Context(), s.cluster.Name, dir); err != nil {
		t.Fatal(err)
	}
	found := false
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		found = found || err == nil && info.Size() > 1000
		return err
	})
	if err != nil || !found {
		t.Errorf("no file with logs under %s (%v)", dir, err)
	}
	if err := s.provider.CollectLogs(t.Context(), newName(), t.TempDir()); err == nil {
		t.Error("CollectLogs() = nil error for a cluster that does not exist")
	}
}

func (s *suite) deleted(t *testing.T) {
	client := client(t, s.cluster)
	if err := s.provider.Delete(t.Context(), s.cluster.Name); err != nil {
		t.Fatal(err)
	}
	if names := s.list(t); slices.Contains(names, s.cluster.Name) {
		t.Errorf("List() = %v, still with %s", names, s.cluster.Name)
	}
	if _, err := os.Stat(filepath.Dir(s.cluster.Kubeconfig)); err == nil {
		t.Errorf("%s is still there", filepath.Dir(s.cluster.Kubeconfig))
	}
	if _, err := client.ServerVersion(); err == nil {
		t.Error("the API server still answers")
	}
	if err := clusters.Healthy(t.Context(), s.provider, s.cluster); err == nil {
		t.Error("Healthy() = nil for a deleted cluster")
	}
}

// cancelled cancels creations at moments that are spread over the time that the
// first one took.
func (s *suite) cancelled(t *testing.T) {
	for _, percent := range []int{0, 2, 8, 20, 50, 80, 95} {
		n := newName()
		t.Cleanup(func() { s.remove(t, n) })
		moment := s.took * time.Duration(percent) / 100
		ctx, cancel := context.WithTimeout(t.Context(), moment)
		c, err := s.provider.Create(ctx, n, s.spec)
		cancel()
		if err == nil {
			t.Logf("done before it could be cancelled at %v", moment)
			s.remove(t, c.Name)
			continue
		}
		if ctx.Err() == nil {
			t.Errorf("cancelled after %v: failed by itself: %v", moment, err)
		}
		if names := s.list(t); slices.Contains(names, n) {
			t.Errorf("cancelled after %v: %s is still there", moment, n)
		}
		if dir := filepath.Join(filepath.Dir(filepath.Dir(s.cluster.Kubeconfig)), n); exists(dir) {
			t.Errorf("cancelled after %v: %s is still there", moment, dir)
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// snapshot reads the kubeconfig files that are the user's own.
func snapshot(t *testing.T) map[string]string {
	t.Helper()
	var paths []string
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, ".kube", "config"))
	}
	paths = append(paths, filepath.SplitList(os.Getenv("KUBECONFIG"))...)
	files := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil {
			files[path] = string(data)
		} else {
			files[path] = "error: " + err.Error()
		}
	}
	return files
}

func (s *suite) homeUntouched(t *testing.T) {
	if diff := cmp.Diff(s.home, snapshot(t)); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}
