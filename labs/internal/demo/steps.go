package demo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/labs/harness/registry"
)

// step is one thing that a person does, and what comes of it.
type step struct {
	title   string
	command string // what a person would have typed
	// do does it. The words are the API server's answer where they are worth reading.
	do func(context.Context, client.Client) (words string, err error)
	// missing says what has not happened yet, "" when the step is over. nil means that it is over when
	// it was answered.
	missing func(*world) string
	// linger is how long to go on looking when nothing is missing any more.
	linger time.Duration
	// whileWaiting is told when nothing happens for a while; "" for nothing.
	whileWaiting string
	why          string
}

// steps are the demo, with a registry outside the cluster. Each begins with the world as the one before left it.
func steps(outside *registry.Registry) []step {
	return []step{{
		title: "Ask for three memcached servers.",
		command: `kubectl create -f - <<EOF
apiVersion: cache.example.com/v1alpha1
kind: Memcached
metadata: {name: cache}
spec: {size: 3}
EOF`,
		do: func(ctx context.Context, c client.Client) (string, error) {
			return "", c.Create(ctx, memcached(3), client.FieldOwner("kubectl-create"))
		},
		missing: func(w *world) string { return unsettled(w.Memory, 3) },
		why: "You said what you want, in a word that Kubernetes did not know a minute ago. The operator wrote one " +
			"Deployment for it; the rest is Kubernetes, where each controller does its own small part. (labs 1 to 4)",
	}, {
		title:   "Delete its Deployment.",
		command: "kubectl delete deployment cache",
		do: func(ctx context.Context, c client.Client) (string, error) {
			return "", c.Delete(ctx, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}},
				client.PropagationPolicy(metav1.DeletePropagationBackground))
		},
		missing: func(w *world) string {
			if !w.Removed("Deployment") {
				return "the Deployment is still there"
			}
			return unsettled(w.Memory, 3)
		},
		why: "The operator watches what it owns. It was told that something had changed, compared what is with what " +
			"should be, and found a whole Deployment missing. Nobody asked it to. (lab 5)",
	}, {
		title:   "Scale to five.",
		command: `kubectl patch memcached cache --type=merge -p '{"spec":{"size":5}}'`,
		do:      func(ctx context.Context, c client.Client) (string, error) { return "", resize(ctx, c, 5) },
		missing: func(w *world) string { return unsettled(w.Memory, 5) },
		why: "One number travels down: Memcached, Deployment, ReplicaSet, Pods. The news that they run travels up " +
			"again, into the status, which only the operator writes. (labs 4 to 6)",
	}, {
		title:   "Ask for six.",
		command: `kubectl patch memcached cache --type=merge -p '{"spec":{"size":6}}'`,
		do: func(ctx context.Context, c client.Client) (string, error) {
			err := resize(ctx, c, 6)
			if apierrors.IsInvalid(err) {
				return err.Error(), nil
			}
			if err == nil {
				err = errors.New("size 6 was accepted: operator/config/crd/bases has lost its maximum")
			}
			return "", err
		},
		why: "The definition of Memcached allows 1 to 5. The API server refuses what does not fit before anybody " +
			"hears of it, so the operator needs no code for it. (lab 1)",
	}, {
		title:   "Let an autoscaler decide.",
		command: "kubectl autoscale memcached cache --min=1 --max=3",
		do: func(ctx context.Context, c client.Client) (string, error) {
			return "", c.Create(ctx, autoscaler())
		},
		missing: func(w *world) string { return unsettled(w.Memory, 3) },
		why: "An autoscaler knows no Memcacheds. It reads and writes a scale, which every kind can have, and the operator " +
			"follows the size, whoever has changed it. (lab 8)",
	}, {
		title:   "Delete the Memcached, while the registry is away.",
		command: "kubectl delete memcached cache --wait=false",
		do: func(ctx context.Context, c client.Client) (string, error) {
			outside.Behave(registry.Everybody, registry.Behaviour{Statuses: []int{http.StatusServiceUnavailable}})
			return "", c.Delete(ctx, memcached(0), client.PropagationPolicy(metav1.DeletePropagationBackground))
		},
		missing: func(w *world) string {
			if w.last.Method != http.MethodDelete {
				return "the operator has not asked the registry to remove the entry"
			}
			return ""
		},
		why: "The operator has an entry in a registry that is no part of the cluster, and nobody else would remove it. So it " +
			"holds the Memcached by a finalizer, until the entry is gone. (lab 10)",
	}, {
		title: "Bring the registry back.",
		do: func(context.Context, client.Client) (string, error) {
			outside.Behave(registry.Everybody, registry.Behaviour{})
			return "", nil
		},
		missing: func(w *world) string { return leftovers(w.Memory) },
		whileWaiting: "The garbage collector looks for new kinds every 30 seconds. It may not have heard of Memcacheds " +
			"yet, so this can take half a minute, once.",
		why: "The operator tried again, and let go. Each object names its owner. When the owner goes, the garbage collector takes what it owned, one " +
			"generation after the other, and the operator has nothing to do. (lab 5)",
	}}
}

func resize(ctx context.Context, c client.Client, size int) error {
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"size":%d}}`, size))
	return c.Patch(ctx, memcached(0), patch, client.FieldOwner("kubectl-patch"))
}
