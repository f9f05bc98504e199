package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/support"

	"github.com/example/operator-lab/clusters"
)

// recorder is a provider that notes what it was asked for.
type recorder struct {
	clusters.Provider
	kubeconfig    string
	name, deleted string
	spec          clusters.Spec
}

func (r *recorder) Create(_ context.Context, name string, spec clusters.Spec) (*clusters.Cluster, error) {
	r.name, r.spec = name, spec
	return &clusters.Cluster{Name: name, Kubeconfig: r.kubeconfig}, nil
}
func (r *recorder) Delete(_ context.Context, name string) error { r.deleted = name; return nil }
func (r *recorder) List(context.Context) ([]string, error)      { return nil, nil }
func (r *recorder) Identity() string                            { return "recorder" }

// start makes the recorder the provider of a manager.
func start(t *testing.T, r *recorder) *Cluster {
	t.Helper()
	manager, err := clusters.New(t.TempDir(), clusters.WithProvider(r))
	if err != nil {
		t.Fatal(err)
	}
	return New(manager)
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","current-context":"here",
"contexts":[{"name":"here","context":{"cluster":"here"}}],
"clusters":[{"name":"here","cluster":{"server":"https://127.0.0.1:1"}}]}`
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return &recorder{kubeconfig: path}
}

func TestCreate(t *testing.T) {
	r := newRecorder(t)
	c := start(t, r).SetDefaults().WithName("mine").WithOpts(WithSpec(clusters.Spec{Image: "image", Workers: 1}))
	kubeconfig, err := c.Create(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.name != "mine" || r.spec.Image != "image" || r.spec.Workers != 1 {
		t.Errorf("created %q with %+v", r.name, r.spec)
	}
	if kubeconfig != r.kubeconfig || c.GetKubeconfig() != r.kubeconfig {
		t.Errorf("kubeconfig = %q and %q, want %q", kubeconfig, c.GetKubeconfig(), r.kubeconfig)
	}
	if c.GetKubectlContext() != "here" {
		t.Errorf("context = %q, want that of the kubeconfig", c.GetKubectlContext())
	}
	if config := c.KubernetesRestConfig(); config == nil || config.Host != "https://127.0.0.1:1" {
		t.Errorf("rest config = %v", config)
	}
	if err := c.Destroy(t.Context()); err != nil || r.deleted != "mine" {
		t.Errorf("Destroy() = %v, deleted %q", err, r.deleted)
	}
}

func TestCreateWithConfig(t *testing.T) {
	r := newRecorder(t)
	file := filepath.Join(t.TempDir(), "kind.yaml")
	if err := os.WriteFile(file, []byte("kind: Cluster"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := start(t, r).WithName("mine").CreateWithConfig(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	if string(r.spec.Config) != "kind: Cluster" {
		t.Errorf("configuration = %q", r.spec.Config)
	}
}

func TestCreateRefusesMisuse(t *testing.T) {
	cases := map[string]func(*Cluster) (support.E2EClusterProvider, []string){
		"v0.26.0":   func(c *Cluster) (support.E2EClusterProvider, []string) { return c.WithVersion("v0.26.0"), nil },
		"/bin/kind": func(c *Cluster) (support.E2EClusterProvider, []string) { return c.WithPath("/bin/kind"), nil },
		"--wait":    func(c *Cluster) (support.E2EClusterProvider, []string) { return c, []string{"--wait"} },
	}
	for word, ask := range cases {
		r := newRecorder(t)
		c, args := ask(start(t, r))
		_, err := c.WithName("mine").Create(t.Context(), args...)
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("Create() error = %v, want one that names %s", err, word)
		}
		if r.name != "" {
			t.Errorf("a cluster was made in spite of %s", word)
		}
	}
}
