package embeddedtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
)

func clientOf(t *testing.T, c *clusters.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := c.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	return kubernetes.NewForConfigOrDie(config)
}

// TestUntrustedAdmin has API servers call a listener of this machine. That of a trusted admin does, which shows that each way
// is one.
func TestUntrustedAdmin(t *testing.T) {
	m, _ := manager(t)
	for name, tc := range map[string]struct {
		spec    clusters.Spec
		refused map[string]string // by way, what the API server says that does not call
	}{
		"trusted":   {clusters.Spec{}, nil},
		"untrusted": {clusters.Spec{APIServerAddress: "127.0.0.2"}, map[string]string{"webhook": "nobody.sock", "log": "no preferred addresses found"}},
	} {
		t.Run(name, func(t *testing.T) {
			client := clientOf(t, create(t, m, tc.spec))
			for way, try := range map[string]func(context.Context, kubernetes.Interface, int32) error{"webhook": callWebhook, "log": readLog} {
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					t.Fatal(err)
				}
				var called atomic.Bool
				go func() {
					if conn, err := l.Accept(); err == nil {
						called.Store(true)
						_ = conn.Close()
					}
				}()
				var last error
				_ = wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, endTimeout, true, func(ctx context.Context) (bool, error) {
					last = try(ctx, client, int32(l.Addr().(*net.TCPAddr).Port))
					return called.Load() || tc.refused[way] != "" && last != nil && strings.Contains(last.Error(), tc.refused[way]), nil
				})
				_ = l.Close()
				if called.Load() == (tc.refused[way] != "") {
					t.Errorf("%s: called %v, and the API server says %v", way, called.Load(), last)
				}
			}
		})
	}
}

// callWebhook has the API server ask a webhook about a ConfigMap.
func callWebhook(ctx context.Context, client kubernetes.Interface, port int32) error {
	url, fail, none := fmt.Sprintf("https://127.0.0.1:%d/", port), admissionv1.Fail, admissionv1.SideEffectClassNone
	_, _ = client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(ctx, &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "egress"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "egress.example.test", ClientConfig: admissionv1.WebhookClientConfig{URL: &url}, FailurePolicy: &fail, SideEffects: &none,
			AdmissionReviewVersions: []string{"v1"},
			Rules: []admissionv1.RuleWithOperations{{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}, metav1.CreateOptions{}) // it is there already after the first time
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "egress-"}}
	_, err := client.CoreV1().ConfigMaps(metav1.NamespaceDefault).Create(ctx, object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	return err
}

// readLog has the API server ask the kubelet of a node at that port for a log.
func readLog(ctx context.Context, client kubernetes.Interface, port int32) error {
	_, _ = client.CoreV1().Nodes().Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "egress"}}, metav1.CreateOptions{})
	node, err := client.CoreV1().Nodes().Get(ctx, "egress", metav1.GetOptions{})
	if err != nil {
		return err
	}
	// kwok, which plays nodes, may have said something else.
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeHostName, Address: "127.0.0.1"}, {Type: corev1.NodeInternalIP, Address: "127.0.0.1"}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	if _, err := client.CoreV1().Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{}); err != nil {
		return err
	}
	pods := client.CoreV1().Pods(metav1.NamespaceDefault)
	_, _ = pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "egress"},
		Spec:       corev1.PodSpec{NodeName: node.Name, Containers: []corev1.Container{{Name: "c", Image: "none.test/none"}}},
	}, metav1.CreateOptions{})
	ctx, cancel := context.WithTimeout(ctx, time.Second) // where kwok says that a node is, nobody answers
	defer cancel()
	return pods.GetLogs("egress", &corev1.PodLogOptions{}).Do(ctx).Error()
}

// A controller manager is a process of the machine, too. Kubernetes deletes the folder of a released volume of the kind
// hostPath, if it lies below any /tmp. Where volumes are deleted it is gone within a second.
func TestVolumeDeletesNoFolder(t *testing.T) {
	m, _ := manager(t)
	folder, err := os.MkdirTemp("/tmp", "lab-volume-") //nolint:usetesting // it has to lie below /tmp
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "released"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Mi")},
			AccessModes:                   []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource:        corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder}},
			ClaimRef:                      &corev1.ObjectReference{Namespace: metav1.NamespaceDefault, Name: "gone", UID: "1-2-3"},
		},
	}
	if _, err := clientOf(t, create(t, m, clusters.Spec{})).CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 100*time.Millisecond, 5*time.Second, true, func(context.Context) (bool, error) {
		_, err := os.Stat(folder)
		return err != nil, nil
	})
	if err == nil {
		t.Error("the folder is gone")
	}
}
