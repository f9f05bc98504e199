// Package ready tells whether a cluster is ready.
package ready

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
)

// poll is how often to look. A look costs the API server two or three short answers.
const poll = 100 * time.Millisecond

// Wanted is what a cluster must show to be ready, besides the ServiceAccount default in the namespace default.
type Wanted struct {
	// Nodes is how many nodes there have to be, all of them Ready.
	Nodes int
	// DNS says that CoreDNS has to be available.
	DNS bool
}

// Wait returns when the cluster is ready. The error is the cause of the end of ctx, with what was missing.
func Wait(ctx context.Context, client kubernetes.Interface, want Wanted) error {
	var missing []string
	var last error
	err := wait.PollUntilContextCancel(ctx, poll, true, func(ctx context.Context) (bool, error) {
		missing, last = Missing(ctx, client, want)
		return last == nil && len(missing) == 0, nil
	})
	switch {
	case err == nil:
		return nil
	case last != nil && len(missing) == 0:
		return fmt.Errorf("%w: %w", context.Cause(ctx), last)
	default:
		return fmt.Errorf("%w: %s", context.Cause(ctx), strings.Join(missing, "; "))
	}
}

// Missing says what the cluster does not show of what is wanted, nothing when it is ready. It looks once.
func Missing(ctx context.Context, client kubernetes.Interface, want Wanted) (missing []string, err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	if len(nodes.Items) < want.Nodes {
		missing = append(missing, fmt.Sprintf("%d of %d nodes are known", len(nodes.Items), want.Nodes))
	}
	missing = append(missing, UnreadyNodes(nodes.Items)...)
	if want.DNS {
		deployment, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Get(ctx, "coredns", metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, "the Deployment coredns in namespace kube-system does not exist")
		case err != nil:
			return missing, err
		case !available(deployment):
			missing = append(missing, "CoreDNS is not available")
		}
	}
	_, err = client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return append(missing, "the ServiceAccount default in namespace default does not exist"), nil
	}
	return missing, err
}

// available says whether all Pods of the newest version are. While a change is rolled out, the old ones may be for the
// last time.
func available(d *appsv1.Deployment) bool {
	want := int32(1)
	if d.Spec.Replicas != nil {
		want = *d.Spec.Replicas
	}
	return d.Status.ObservedGeneration >= d.Generation && min(d.Status.UpdatedReplicas, d.Status.AvailableReplicas) >= want
}

// UnreadyNodes says why nodes are not Ready, or of what they are short.
func UnreadyNodes(nodes []corev1.Node) (unready []string) {
	for _, node := range nodes {
		why := "has not reported yet"
		for _, condition := range node.Status.Conditions {
			switch {
			case condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue:
				why = ""
			case condition.Type == corev1.NodeReady:
				why = "is not Ready: " + condition.Message
			case condition.Status == corev1.ConditionTrue: // all other conditions tell of a shortage
				unready = append(unready, fmt.Sprintf("node %s has %s: %s", node.Name, condition.Type, condition.Message))
			}
		}
		if why != "" {
			unready = append(unready, fmt.Sprintf("node %s %s", node.Name, why))
		}
	}
	slices.Sort(unready)
	return unready
}
