package hosting

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		if err := c.Get(ctx, client.ObjectKeyFromObject(wanted), wanted); err != nil {
			return &clusters.Problem{What: name(wanted) + " is missing", Fix: fix(err, "bin/classroom hosted install"), Err: err}
		}
	}
	told("all objects are there")
	for _, object := range objects {
		switch object.GetKind() {
		case "ClusterQueue":
			err = until(ctx, c, object, "the queue admits verdicts", "kubectl get pods -n kueue-system", told, notActive)
		case "SandboxWarmPool":
			fix := fmt.Sprintf("kubectl get sandboxes,pods,events -n %s", object.GetNamespace())
			err = until(ctx, c, object, "a sandbox is waiting", fix, told, noneWaits)
		}
		if err != nil {
			return err
		}
	}
	if err := judges.Try(ctx); err != nil {
		return err
	}
	told("code in a sandbox reaches nothing")
	return nil
}

// noneWaits says that no sandbox of a pool waits, "" if one does.
func noneWaits(pool *unstructured.Unstructured) string {
	if n, _, _ := unstructured.NestedInt64(pool.Object, "status", "readyReplicas"); n == 0 {
		return "no sandbox is ready yet"
	}
	return ""
}

// until reads an object again and again until nothing is lacking any more, and tells what is.
func until(ctx context.Context, c client.Client, object *unstructured.Unstructured, done, fix string, told func(string), lacking func(*unstructured.Unstructured) string) error {
	last := ""
	err := wait.PollUntilContextTimeout(ctx, readyPeriod, readyLimit, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return false, err
		}
		lacks := lacking(object)
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

// notActive says why a queue admits no Jobs, "" if it does.
func notActive(queue *unstructured.Unstructured) string {
	switch active := hosted.Condition(queue, "Active"); {
	case active == nil:
		return name(queue) + " is not active yet"
	case active.Status != metav1.ConditionTrue:
		return fmt.Sprintf("%s is not active: %s", name(queue), active.Message)
	}
	return ""
}
