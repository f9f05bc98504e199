//go:build linux

package embeddedtest

import (
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
)

// A kept control plane that lost its processes, as after a reboot, is brought back with what was in it, and outlives
// whoever did that.
func TestARestartBringsAControlPlaneBack(t *testing.T) {
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

	if err := m.owned.Restart(t.Context(), m.name); err != nil {
		t.Fatal(err)
	}
	again := m.awaitProcesses(t) // the node of before is Ready, whoever runs
	if _, err := namespaces.Get(t.Context(), work.Name, metav1.GetOptions{}); err != nil {
		t.Errorf("what was in it is lost: %v", err)
	}
	owners, err := m.owned.List(t.Context())
	if err != nil || len(owners) != 1 || !owners[0].Kept || owners[0].PID != again[0].PID {
		t.Errorf("records %+v, %v, want the new supervisor", owners, err)
	}
	if err := m.owned.Delete(t.Context(), m.name); err != nil {
		t.Error(err)
	}
}
