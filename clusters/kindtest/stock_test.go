package kindtest

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
)

// A comparison with a cluster that has some of our tuning would be none.
func TestStockClusterHasNoneOfOurTuning(t *testing.T) {
	t.Parallel()
	kind, _ := newKind(t, clusters.WithKindsWait(clusters.StockWait))
	const name = "lab-stock"
	defer mustBeGone(t, kind, name)
	spec := clusters.Spec{NodeImage: nodeImage(t, kind.Engine()), Config: clusters.StockConfig()}
	c, err := kind.Create(t.Context(), name, spec)
	if err != nil {
		t.Fatal(err)
	}
	config, err := clusters.RESTConfig(c.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client := kubernetes.NewForConfigOrDie(config)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(nodes.Items) != 1 || len(unready(nodes.Items)) > 0 || c.Version == "" {
		t.Errorf("cluster = %+v, nodes not ready: %v, want one node that is Ready", *c, unready(nodes.Items))
	}
	dns := coreDNS(t, client)
	if dns.Generation != 1 || *dns.Spec.Replicas != 2 {
		t.Errorf("CoreDNS has %d replicas, generation %d, want it as kubeadm made it: 2 and 1", *dns.Spec.Replicas, dns.Generation)
	}
	for _, component := range []string{"etcd", "kube-controller-manager", "kube-scheduler"} {
		pod, err := client.CoreV1().Pods("kube-system").Get(t.Context(), component+"-"+nodes.Items[0].Name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		command := strings.Join(pod.Spec.Containers[0].Command, " ")
		for _, ours := range []string{"unsafe-no-fsync", "leader-elect=false", "node-monitor-grace-period", "kube-api-qps"} {
			if strings.Contains(command, ours) {
				t.Errorf("%s runs with %s, which is our tuning: %s", component, ours, command)
			}
		}
	}
	if err := kind.Delete(t.Context(), name); err != nil {
		t.Error(err)
	}
}

// unready are the names of the nodes that are not Ready.
func unready(nodes []corev1.Node) (names []string) {
	for _, node := range nodes {
		ready := false
		for _, condition := range node.Status.Conditions {
			ready = ready || condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
		}
		if !ready {
			names = append(names, node.Name)
		}
	}
	return names
}
