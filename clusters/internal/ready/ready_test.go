package ready

import (
	"context"
	"errors"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
)

// cluster has everything that is wanted, after change.
func cluster(change func(*corev1.Node, *appsv1.Deployment, *corev1.ServiceAccount)) *fake.Clientset {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "one"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: corev1.ConditionTrue}, {Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse},
	}}}
	dns := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "coredns", Namespace: "kube-system", Generation: 2},
		Status:     appsv1.DeploymentStatus{ObservedGeneration: 2, UpdatedReplicas: 1, AvailableReplicas: 1},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default", Namespace: "default"}}
	change(node, dns, account)
	return fake.NewClientset([]runtime.Object{node, dns, account}...)
}

func TestMissing(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*corev1.Node, *appsv1.Deployment, *corev1.ServiceAccount)
		want   string // "" is ready
	}{
		"ready":    {func(*corev1.Node, *appsv1.Deployment, *corev1.ServiceAccount) {}, ""},
		"new node": {func(n *corev1.Node, _ *appsv1.Deployment, _ *corev1.ServiceAccount) { n.Status.Conditions = nil }, "node one has not reported yet"},
		"unready node": {func(n *corev1.Node, _ *appsv1.Deployment, _ *corev1.ServiceAccount) {
			n.Status.Conditions[0].Status = "False"
		}, "node one is not Ready"},
		"full disk": {func(n *corev1.Node, _ *appsv1.Deployment, _ *corev1.ServiceAccount) {
			n.Status.Conditions[1].Status = "True"
		}, "node one has DiskPressure"},
		"no DNS":         {func(_ *corev1.Node, d *appsv1.Deployment, _ *corev1.ServiceAccount) { d.Name = "other" }, "coredns in namespace kube-system does not exist"},
		"DNS starts":     {func(_ *corev1.Node, d *appsv1.Deployment, _ *corev1.ServiceAccount) { d.Status.AvailableReplicas = 0 }, "CoreDNS is not available"},
		"DNS rolls out":  {func(_ *corev1.Node, d *appsv1.Deployment, _ *corev1.ServiceAccount) { d.Status.UpdatedReplicas = 0 }, "CoreDNS is not available"},
		"DNS is changed": {func(_ *corev1.Node, d *appsv1.Deployment, _ *corev1.ServiceAccount) { d.Generation = 3 }, "CoreDNS is not available"},
		"no account":     {func(_ *corev1.Node, _ *appsv1.Deployment, a *corev1.ServiceAccount) { a.Name = "other" }, "ServiceAccount default"},
	} {
		t.Run(name, func(t *testing.T) {
			missing, err := Missing(t.Context(), cluster(tc.change), Wanted{Nodes: 1, DNS: true})
			got := strings.Join(missing, "; ")
			if err != nil || (got == "") != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("Missing() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

func TestWaitSaysWhatIsMissing(t *testing.T) {
	slow := errors.New("too slow")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 3*poll, slow)
	defer cancel()
	err := Wait(ctx, cluster(func(*corev1.Node, *appsv1.Deployment, *corev1.ServiceAccount) {}), Wanted{Nodes: 2})
	if !errors.Is(err, slow) || !strings.Contains(err.Error(), "1 of 2 nodes are known") {
		t.Errorf("Wait() = %v, want the cause and what was missing", err)
	}
}
