//go:build linux

package roomtest

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/classroom/room"
)

// TestARoomOfTwo is a lesson in short: two clusters are made side by side, neither opens the other, one is stopped
// and fixed with what was in it, and in the end nothing is left.
func TestARoomOfTwo(t *testing.T) {
	state := t.TempDir()
	kind, err := clusters.NewKind(state)
	if err != nil {
		t.Fatal(err)
	}
	image, err := nodeimage.Resolve(t.Context(), kind.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	owned := clusters.NewOwned(state, kind)
	const purpose = "roomtest"
	names := []string{clusters.NewName(purpose), clusters.NewName(purpose)}
	t.Cleanup(func() { // of a test that failed
		for _, name := range names {
			if err := kind.Delete(context.WithoutCancel(t.Context()), name); err != nil {
				t.Error(err)
			}
		}
	})
	r := room.New(owned, room.Options{
		Purpose: purpose, Spec: clusters.Spec{NodeImage: image.Ref},
		Progress: func(name string, step room.Step, err error) { t.Log(name, step, err) },
	})
	first, second := upTwo(t, r, names, room.Created, room.Created)
	t.Run("a kubeconfig opens no other cluster", func(t *testing.T) { onlyTheirs(t, first, second) })
	mark(t, first)

	if out, err := exec.CommandContext(t.Context(), kind.Engine(), "stop", first.Name+"-control-plane").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found, err := r.Look(t.Context(), names)
	if err != nil || found[0].State != room.Stopped || found[1].State != room.Healthy {
		t.Fatalf("Look() = %+v, %v, want the first one stopped", found, err)
	}
	upTwo(t, r, names, room.Restarted, room.Untouched)
	if _, err := connect(t, first, nil).CoreV1().Namespaces().Get(t.Context(), "work", metav1.GetOptions{}); err != nil {
		t.Errorf("what was in the stopped cluster is lost: %v", err)
	}

	if err := r.Down(t.Context(), names); err != nil {
		t.Error(err)
	}
	there, err := kind.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(there, names[0]) || slices.Contains(there, names[1]) {
		t.Errorf("left after Down: %v", there)
	}
	if records, err := owned.List(t.Context()); err != nil || len(records) > 0 {
		t.Errorf("records left after Down: %+v, %v", records, err)
	}
}

// upTwo makes or fixes two clusters, and fails the test unless that took those steps and they are healthy.
func upTwo(t *testing.T, r *room.Room, names []string, steps ...room.Step) (first, second *clusters.Cluster) {
	t.Helper()
	found, err := r.Look(t.Context(), names)
	if err != nil {
		t.Fatal(err)
	}
	results := r.Up(t.Context(), found)
	for i, result := range results {
		if result.Step != steps[i] || result.Err != nil {
			t.Fatalf("%s: %s, %v; want %s", result.Name, result.Step, result.Err, steps[i])
		}
	}
	found, err = r.Look(t.Context(), names)
	if err != nil || found[0].State != room.Healthy || found[1].State != room.Healthy {
		t.Fatalf("Look() = %+v, %v, want both healthy", found, err)
	}
	return results[0].Cluster, results[1].Cluster
}

// connect talks to a cluster with what its kubeconfig says, which change may change.
func connect(t *testing.T, c *clusters.Cluster, change func(*rest.Config)) *kubernetes.Clientset {
	t.Helper()
	config, err := clusters.RESTConfig(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if change != nil {
		change(config)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// mark leaves something in a cluster.
func mark(t *testing.T, c *clusters.Cluster) {
	t.Helper()
	work := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	if _, err := connect(t, c, nil).CoreV1().Namespaces().Create(t.Context(), work, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// onlyTheirs takes the identity out of one kubeconfig to the API server of the other.
func onlyTheirs(t *testing.T, mine, theirs *clusters.Cluster) {
	t.Helper()
	for _, c := range []*clusters.Cluster{mine, theirs} {
		if info, err := os.Stat(c.Kubeconfig); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("kubeconfig of %s: %v, %v", c.Name, info, err)
		}
	}
	other, err := clusters.RESTConfig(theirs.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*rest.Config){
		"without knowing its authority": func(c *rest.Config) { c.Host = other.Host },
		"trusting its authority":        func(c *rest.Config) { c.Host, c.CAData = other.Host, other.CAData },
	} {
		list, err := connect(t, mine, change).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err == nil {
			t.Errorf("%s: %s opens %s, and sees %d namespaces", name, mine.Name, theirs.Name, len(list.Items))
		}
		t.Logf("%s: %v", name, err)
	}
}
