package kindtest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/clusters/internal/ready"
)

// TestContract tests what every Provider must do.
func TestContract(t *testing.T) {
	t.Run("kind", func(t *testing.T) {
		t.Parallel()
		m, _ := newManager(t)
		testContract(t, m, clusters.Spec{Image: nodeImage(t)})
	})
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		m, err := embedded.NewManager(t.TempDir(), "", func(line string) { t.Log(line) })
		if err != nil {
			t.Fatal(err)
		}
		testContract(t, m, clusters.Spec{Workers: 1})
	})
}

func testContract(t *testing.T, m *clusters.Manager, spec clusters.Spec) {
	s := &suite{manager: m, provider: m.Provider(), spec: spec, home: snapshot()}
	t.Run("deleting a cluster that does not exist is no error", s.deleteAbsent)
	t.Run("a name that cannot be one is refused", s.badName)
	s.create(t)
	t.Run("a new cluster is healthy", s.healthy)
	t.Run("its kubeconfig is private", s.kubeconfig)
	t.Run("its name cannot be used twice", s.nameTaken)
	t.Run("its controllers can be restarted", s.restart)
	t.Run("it works after a pause", s.pause)
	t.Run("logs are collected", s.logs)
	t.Run("nothing is left of it after its deletion", s.deleted)
	t.Run("nothing is left of a creation that was cancelled", s.cancelled)
	t.Run("the user's own kubeconfig is what it was", s.homeUntouched)
}

type suite struct {
	manager  *clusters.Manager
	provider clusters.Provider
	spec     clusters.Spec
	home     map[string]string

	cluster *clusters.Cluster
	took    time.Duration
}

// newName is one that nobody else uses.
func newName() string { return clusters.NewName("contract") }

// create makes the cluster that most of the contract is about.
func (s *suite) create(t *testing.T) {
	n := newName()
	t.Cleanup(func() { s.remove(t, n) })
	start := time.Now()
	c, err := s.provider.Create(t.Context(), n, s.spec)
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
	config, err := c.RESTConfig()
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
	missing, err := ready.Missing(t.Context(), client(t, s.cluster), ready.Wanted{Nodes: s.cluster.Nodes, DNS: s.cluster.RealPods})
	if err != nil || len(missing) > 0 {
		t.Errorf("handed out before it was ready: %v, %s", err, strings.Join(missing, "; "))
	}
	if err := s.manager.Healthy(t.Context(), s.cluster); err != nil {
		t.Errorf("Healthy() = %v, want nil", err)
	}
}

func (s *suite) restart(t *testing.T) {
	if err := s.provider.RestartControllers(t.Context(), s.cluster.Name); err != nil {
		t.Fatal(err)
	}
	if err := s.manager.Healthy(t.Context(), s.cluster); err != nil {
		t.Errorf("Healthy() = %v after a restart of the controllers", err)
	}
}

func (s *suite) pause(t *testing.T) {
	if err := s.provider.Pause(t.Context(), s.cluster.Name); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		_, err := client(t, s.cluster).CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		return err != nil, nil
	})
	if err != nil {
		t.Error("the API server of a paused cluster answers")
	}
	if err := s.provider.Resume(t.Context(), s.cluster.Name); err != nil {
		t.Fatal(err)
	}
	if err := s.manager.Healthy(t.Context(), s.cluster); err != nil {
		t.Errorf("Healthy() = %v after a pause", err)
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
	config, err := s.cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(config.Host, "https://127.0.0.1:") {
		t.Errorf("the API server is at %s, want it on loopback only", config.Host)
	}
}

func (s *suite) nameTaken(t *testing.T) {
	if _, err := s.provider.Create(t.Context(), s.cluster.Name, s.spec); err == nil {
		t.Error("Create() = nil error for a name that is taken: the cluster is not fresh")
	}
	if err := s.manager.Healthy(t.Context(), s.cluster); err != nil {
		t.Errorf("the refused creation harmed the cluster: %v", err)
	}
}

func (s *suite) logs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	if err := s.provider.CollectLogs(t.Context(), s.cluster.Name, dir); err != nil {
		t.Fatal(err)
	}
	logs, _ := filepath.Glob(filepath.Join(dir, "*.log"))
	ofNodes, _ := filepath.Glob(filepath.Join(dir, "*", "*.log"))
	if !slices.ContainsFunc(append(logs, ofNodes...), func(file string) bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 1000
	}) {
		t.Errorf("no file with logs under %s", dir)
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
	if err := s.manager.Healthy(t.Context(), s.cluster); err == nil {
		t.Error("Healthy() = nil for a deleted cluster")
	}
}

// cancelled cancels creations at moments that are spread over the time that the first one took.
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
		dir := filepath.Join(filepath.Dir(filepath.Dir(s.cluster.Kubeconfig)), n)
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("cancelled after %v: %s is still there", moment, dir)
		}
	}
}

// snapshot reads the kubeconfig files that are the user's own.
func snapshot() map[string]string {
	files := map[string]string{}
	for _, path := range clientcmd.NewDefaultClientConfigLoadingRules().Precedence {
		data, err := os.ReadFile(path)
		files[path] = fmt.Sprint(string(data), err)
	}
	return files
}

func (s *suite) homeUntouched(t *testing.T) {
	if diff := cmp.Diff(s.home, snapshot()); diff != "" {
		t.Errorf("files changed (-before +after):\n%s", diff)
	}
}
