package kindtest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/contract"
	"github.com/example/operator-lab/clusters/nodeimage"
)

// newKind returns a provider whose state is the test's own.
func newKind(t *testing.T, opts ...clusters.KindOption) (*clusters.Kind, string) {
	t.Helper()
	state := t.TempDir()
	kind, err := clusters.NewKind(state, append(opts, clusters.WithLogger(func(line string) { t.Log(line) }))...)
	if err != nil {
		t.Fatal(err)
	}
	return kind, state
}

func nodeImage(t *testing.T, engine string) string {
	t.Helper()
	image, err := nodeimage.Resolve(t.Context(), engine, os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	return image.Ref
}

// mustBeGone fails the test when the engine still has the cluster, and removes
// it.
func mustBeGone(t *testing.T, p clusters.Provider, name string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	names, err := p.List(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(names, name) {
		t.Errorf("cluster %s is still there", name)
	}
	if err := p.Delete(ctx, name); err != nil {
		t.Errorf("Delete(%s): %v", name, err)
	}
}

func TestKindKeepsTheContract(t *testing.T) {
	t.Parallel()
	kind, _ := newKind(t)
	contract.Test(t, kind, clusters.Spec{NodeImage: nodeImage(t, kind.Engine())})
}

func TestClusterThatIsNotReadyInTime(t *testing.T) {
	t.Parallel()
	kind, state := newKind(t, clusters.WithReadyTimeout(time.Millisecond))
	const name = "lab-not-ready"
	defer mustBeGone(t, kind, name)
	_, err := kind.Create(t.Context(), name, clusters.Spec{NodeImage: nodeImage(t, kind.Engine())})
	problem, ok := errors.AsType[*clusters.Problem](err)
	if !ok || !strings.Contains(strings.ToLower(err.Error()), "coredns") || problem.Fix == "" {
		t.Errorf("Create() error = %v, want a *Problem that says what was not ready", err)
	}
	if names, err := kind.List(t.Context()); err != nil || slices.Contains(names, name) {
		t.Errorf("List() = %v, %v, want the failed cluster gone", names, err)
	}
	for _, file := range []string{"create.log", name + "-control-plane/journal.log"} {
		path := filepath.Join(state, "artifacts", name, file)
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v, want what is known about the failure", path, err)
		}
	}
}

// All nodes of a built image give Pods the same addresses.
func TestWorkersAreRefusedOnABuiltImage(t *testing.T) {
	t.Parallel()
	kind, _ := newKind(t)
	const name = "lab-workers"
	defer mustBeGone(t, kind, name)
	_, err := kind.Create(t.Context(), name, clusters.Spec{NodeImage: nodeImage(t, kind.Engine()), Workers: 1})
	if err == nil || !strings.Contains(err.Error(), "one node") {
		t.Errorf("Create() = %v, want a refusal that says why", err)
	}
}

func TestKubernetesOfANewCluster(t *testing.T) {
	t.Parallel()
	kind, _ := newKind(t)
	const name = "lab-new"
	defer mustBeGone(t, kind, name)
	c, err := kind.Create(t.Context(), name, clusters.Spec{NodeImage: nodeImage(t, kind.Engine())})
	if err != nil {
		t.Fatal(err)
	}
	nodes, err := kind.Nodes(t.Context(), name)
	if err != nil || len(nodes) != 1 || !nodes[0].Running || nodes[0].FreeDisk == 0 {
		t.Errorf("nodes = %v, %v, want one that runs, with a known amount of free disk", nodes, err)
	}
	t.Run("CoreDNS has one copy and had no other", func(t *testing.T) { oneDNS(t, c) })
	t.Run("kind's own token opens nothing", func(t *testing.T) { refusesKindsToken(t, c) })
	t.Run("another state folder cannot delete it", func(t *testing.T) { staysForOthers(t, kind, c) })
	if err := kind.Delete(t.Context(), name); err != nil {
		t.Error(err)
	}
}

func staysForOthers(t *testing.T, kind *clusters.Kind, c *clusters.Cluster) {
	other, _ := newKind(t)
	if err := other.Delete(t.Context(), c.Name); err == nil || !strings.Contains(err.Error(), c.Name) {
		t.Errorf("Delete() = %v, want a refusal", err)
	}
	if err := clusters.Healthy(t.Context(), kind, c); err != nil {
		t.Errorf("Healthy() = %v after another state folder's Delete", err)
	}
}

// oneDNS fails the test when CoreDNS was rolled out more than once, which costs a Pod each, or is not ready at once.
func oneDNS(t *testing.T, c *clusters.Cluster) {
	t.Helper()
	config, err := clusters.RESTConfig(c.Kubeconfig)
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

// refusesKindsToken comes with the token that stands in kind's source. With it a stranger could be a node.
func refusesKindsToken(t *testing.T, c *clusters.Cluster) {
	t.Helper()
	config, err := clusters.RESTConfig(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	stranger := rest.AnonymousClientConfig(config)
	stranger.BearerToken = "abcdef.0123456789abcdef"
	who, err := kubernetes.NewForConfigOrDie(stranger).AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("it makes %s of a stranger: %v", who.Status.UserInfo.Username, err)
	}
}

// A patch that kubeadm cannot accept stands for everything that makes kind fail.
func TestFailedBootShowsWhatKubeadmSaid(t *testing.T) {
	t.Parallel()
	kind, _ := newKind(t)
	const name = "lab-boot-fails"
	defer mustBeGone(t, kind, name)
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
	_, err = kind.Create(t.Context(), name, clusters.Spec{NodeImage: nodeImage(t, kind.Engine()), Config: config})
	if _, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(err.Error(), "CAESAR") {
		t.Errorf("Create() error = %v, want a *Problem with the words of kubeadm", err)
	}
	if names, err := kind.List(t.Context()); err != nil || slices.Contains(names, name) {
		t.Errorf("List() = %v, %v, want the failed cluster gone", names, err)
	}
}
