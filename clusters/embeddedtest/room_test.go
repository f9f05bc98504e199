//go:build linux

package embeddedtest

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/room"
)

// A control plane of a room that lost its processes, as after a reboot, is brought back with what was in it, and
// outlives whoever did that.
func TestARoomBringsAControlPlaneBack(t *testing.T) {
	m := startMaker(t, "keep")
	config, err := clusters.RESTConfig(clusters.Kubeconfig(m.state, m.name))
	if err != nil {
		t.Fatal(err)
	}
	namespaces := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()
	work := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "work"}}
	if _, err := namespaces.Create(t.Context(), work, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ids := m.processes(t)
	if err := syscall.Kill(ids[0].PID, syscall.SIGKILL); err != nil { // the kernel ends the others
		t.Fatal(err)
	}
	awaitEnd(t, ids)

	r := room.New(m.owned, room.Options{
		Purpose: "test", Progress: func(name string, step room.Step, err error) { t.Log(name, step, err) },
	})
	found, err := r.Look(t.Context(), []string{m.name})
	if err != nil || found[0].State != room.Stopped {
		t.Fatalf("Look() = %+v, %v, want it stopped", found, err)
	}
	if results := r.Up(t.Context(), found); results[0].Step != room.Restarted {
		t.Fatalf("Up() = %+v, want it restarted", results)
	}
	if _, err := namespaces.Get(t.Context(), work.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("what was in it is lost: %v", err)
	}
	owners, err := m.owned.List(t.Context())
	if err != nil || len(owners) != 1 || !owners[0].Kept || owners[0].Process != m.processes(t)[0] {
		t.Errorf("records %+v, %v, want the new supervisor", owners, err)
	}
	if err := r.Down(t.Context(), []string{m.name}); err != nil {
		t.Error(err)
	}
}
