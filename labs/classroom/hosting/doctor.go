package hosting

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/hosted"
)

const (
	// readyLimit is how long the first sandbox may take, for which a node may have to pull the image.
	readyLimit = 10 * time.Minute
	// readyPeriod is the time from one look to the next.
	readyPeriod = 500 * time.Millisecond
)

// Doctor says what verdicts lack: an error is a [*clusters.Problem] with what mends it. At last it has a Job try whether code in a
// sandbox reaches anything, which takes as long as two Pods take to start.
func Doctor(ctx context.Context, c client.Client, judges *hosted.Judges, o Options, told func(line string)) error {
	objects, err := o.objects()
	if err != nil {
		return err
	}
	for _, wanted := range objects {
		there := &unstructured.Unstructured{}
		there.SetGroupVersionKind(wanted.GroupVersionKind())
		if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), there); err != nil {
			return &clusters.Problem{What: name(wanted) + " is missing", Fix: fix(err, "bin/classroom hosted install"), Err: err}
		}
	}
	told("all objects are there")
	if err := active(ctx, c, told); err != nil {
		return err
	}
	if err := waiting(ctx, c, o, told); err != nil {
		return err
	}
	if err := judges.Try(ctx); err != nil {
		return err
	}
	told("code in a sandbox reaches nothing")
	return nil
}

// active says whether Kueue admits Jobs.
func active(ctx context.Context, c client.Client, told func(line string)) error {
	queue := &unstructured.Unstructured{}
	queue.SetAPIVersion("kueue.x-k8s.io/v1beta2")
	queue.SetKind("ClusterQueue")
	return until(ctx, c, queue, client.ObjectKey{Name: "operator-lab"}, "the queue admits verdicts", "kubectl get pods -n kueue-system", told, func() string {
		return condition(queue, "Active")
	})
}

// waiting says whether a sandbox waits.
func waiting(ctx context.Context, c client.Client, o Options, told func(line string)) error {
	namespace := o.Namespace
	if namespace == "" {
		namespace = DefaultNamespace
	}
	pool := &unstructured.Unstructured{}
	pool.SetAPIVersion("extensions.agents.x-k8s.io/v1beta1")
	pool.SetKind("SandboxWarmPool")
	key := client.ObjectKey{Namespace: namespace, Name: "sandboxes"}
	fix := fmt.Sprintf("kubectl get sandboxes,pods,events -n %s", namespace)
	return until(ctx, c, pool, key, "a sandbox is waiting", fix, told, func() string {
		if n, _, _ := unstructured.NestedInt64(pool.Object, "status", "readyReplicas"); n == 0 {
			return "no sandbox is ready yet"
		}
		return ""
	})
}

// until reads an object again and again until nothing is lacking any more, and tells what is.
func until(ctx context.Context, c client.Client, object *unstructured.Unstructured, key client.ObjectKey, done, fix string, told func(string), lacking func() string) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, readyPeriod, readyLimit, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, key, object); err != nil {
			return false, err
		}
		lacks := lacking()
		if lacks != "" && lacks != last {
			told(lacks)
			last = lacks
		}
		return lacks == "", nil
	})
	if err != nil {
		return &clusters.Problem{What: last, Fix: fix, Err: err}
	}
	told(done)
	return nil
}

// condition is what an object's condition says against it, "" for nothing.
func condition(object *unstructured.Unstructured, kind string) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, c := range conditions {
		c, ok := c.(map[string]any)
		switch {
		case !ok || c["type"] != kind:
		case c["status"] == "True":
			return ""
		default:
			return fmt.Sprintf("%s is not %s: %v", name(object), kind, c["message"])
		}
	}
	return fmt.Sprintf("%s is not %s yet", name(object), kind)
}
