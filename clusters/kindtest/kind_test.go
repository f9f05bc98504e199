// Package kindtest tests the kind provider on a real container engine. It is a package
// apart, so that the tests of package clusters need no engine.
//
// NODE_IMAGE chooses the node image, as it does for the labs.
package kindtest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
)

// newManager returns one whose state is the test's own.
func newManager(t *testing.T) (m *clusters.Manager, state string) {
	t.Helper()
	state = t.TempDir()
	m, err := clusters.New(state, clusters.WithEngine(engineName()), clusters.WithLogger(func(line string) { t.Log(line) }))
	if err != nil {
		t.Fatal(err)
	}
	return m, state
}

// engineName is the container engine of these tests.
func engineName() string { return cmp.Or(os.Getenv("KIND_EXPERIMENTAL_PROVIDER"), "docker") }

func nodeImage(t *testing.T) string {
	t.Helper()
	image, err := nodeimage.Resolve(t.Context(), engineName(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	return image.Ref
}

// mustBeGone fails the test when the engine still has the cluster.
func mustBeGone(t *testing.T, m *clusters.Manager, name string) {
	t.Helper()
	names, err := m.Provider().List(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names, name) {
		t.Errorf("cluster %s is still there", name)
	}
}

func TestNewCluster(t *testing.T) {
	t.Parallel()
	m, _ := newManager(t)
	c, err := m.Create(t.Context(), clusters.Spec{Image: nodeImage(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer mustBeGone(t, m, c.Name)
	nodes, err := m.Provider().Nodes(t.Context(), c.Name)
	if err != nil || len(nodes) != 1 || !nodes[0].Running || nodes[0].FreeDisk == 0 {
		t.Errorf("nodes = %v, %v, want one that runs, with a known amount of free disk", nodes, err)
	}
	t.Run("CoreDNS has one copy and had no other", func(t *testing.T) { oneDNS(t, c) })
	t.Run("an image of the engine reaches its node", func(t *testing.T) { loadsImage(t, m, c) })
	t.Run("another state folder cannot delete it", func(t *testing.T) {
		other, _ := newManager(t)
		if err := other.Delete(t.Context(), c.Name); err == nil || !strings.Contains(err.Error(), c.Name) {
			t.Errorf("Delete() = %v, want a refusal", err)
		}
		if err := m.Healthy(t.Context(), c); err != nil {
			t.Errorf("Healthy() = %v after another state folder's Delete", err)
		}
	})
	if err := m.Delete(t.Context(), c.Name); err != nil {
		t.Error(err)
	}
}

func loadsImage(t *testing.T, m *clusters.Manager, c *clusters.Cluster) {
	t.Helper()
	const ref = "operator-lab.local/kindtest:1"
	empty := exec.CommandContext(t.Context(), engineName(), "import", "-", ref)
	empty.Stdin = bytes.NewReader(make([]byte, 1024)) // a tar without files
	if out, err := empty.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	defer engine(t, "rmi", ref)
	if err := m.LoadImage(t.Context(), c.Name, ref); err != nil {
		t.Fatal(err)
	}
	engine(t, "exec", c.Name+"-control-plane", "ctr", "-n", "k8s.io", "images", "label", ref, "found=true")
}

// oneDNS fails the test when CoreDNS was rolled out more than once, which costs a Pod each, or is not ready at once.
func oneDNS(t *testing.T, c *clusters.Cluster) {
	t.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	dns, err := kubernetes.NewForConfigOrDie(config).AppsV1().Deployments("kube-system").Get(t.Context(), "coredns", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	probe := dns.Spec.Template.Spec.Containers[0].ReadinessProbe
	if dns.Generation != 1 || *dns.Spec.Replicas != 1 || probe == nil || probe.PeriodSeconds != 1 {
		t.Errorf("CoreDNS has %d replicas, generation %d, readiness probe %+v, want 1, 1 and every second", *dns.Spec.Replicas, dns.Generation, probe)
	}
}

// A patch that kubeadm cannot accept stands for everything that makes kind fail.
func TestFailedCreate(t *testing.T) {
	t.Parallel()
	m, state := newManager(t)
	const name = "lab-boot-fails"
	config, err := os.ReadFile("../kind.yaml")
	if err != nil {
		t.Fatal(err)
	}
	cluster := &v1alpha4.Cluster{}
	if err := yaml.Unmarshal(config, cluster); err != nil {
		t.Fatal(err)
	}
	cluster.KubeadmConfigPatches = append(cluster.KubeadmConfigPatches, "kind: ClusterConfiguration\nencryptionAlgorithm: CAESAR\n")
	if config, err = yaml.Marshal(cluster); err != nil {
		t.Fatal(err)
	}
	_, err = m.Create(t.Context(), clusters.Spec{Name: name, Image: nodeImage(t), Config: config})
	if _, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(err.Error(), "CAESAR") {
		t.Errorf("Create() error = %v, want a *Problem with the words of kubeadm", err)
	}
	mustBeGone(t, m, name)
	for _, file := range []string{"create.log", name + "-control-plane/journal.log"} {
		path := filepath.Join(state, "artifacts", name, file)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want what is known about the failure", path, err)
		}
	}
}
