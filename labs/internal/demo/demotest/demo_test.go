package demotest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/demo"
	"github.com/example/operator-lab/labs/internal/memcached"
)

const root = "../../../.."

// limit is more than the demo needs, so that one that hangs fails with its own words.
const limit = 5 * time.Minute

// Both happen in the same namespace of one cluster, and leave nothing there.
func TestOnARealCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	c := cluster(ctx, t)
	t.Run("lab 0", func(t *testing.T) { theAnswersAreWhatHappens(ctx, t, c) })
	t.Run("demo", func(t *testing.T) { theDemoTellsWhatHappened(ctx, t, c) })
}

// theAnswersAreWhatHappens wants the answers that lab 0 teaches to be those of a real cluster.
func theAnswersAreWhatHappens(ctx context.Context, t *testing.T, c *clusters.Cluster) {
	var out bytes.Buffer
	right, judged, err := demo.Quiz{Cluster: c, Operand: memcached.Image, Out: io.MultiWriter(&out, t.Output()), Answers: demo.Answers{
		"makes-the-replicaset": "deployment-controller", "makes-the-pods": "replicaset-controller", "chooses-the-node": "kube-scheduler",
		"starts-the-containers": "kubelet", "replaces-a-pod": "replicaset-controller", "undoes-your-change": "deployment-controller",
		"replaces-a-lone-pod": "nobody", "clears-up": "garbage-collector",
	}}.Run(ctx)
	if err != nil || right != 8 || judged != 8 {
		t.Errorf("%d of %d are right, %v", right, judged, err)
	}
	for _, action := range []string{`you +asked to end Pod web-`, `you +scaled ReplicaSet \S+ from 2 to 4`} {
		if !regexp.MustCompile(action).Match(out.Bytes()) {
			t.Errorf("the timeline lacks %q", action)
		}
	}
}

func theDemoTellsWhatHappened(ctx context.Context, t *testing.T, c *clusters.Cluster) {
	programs, err := demo.Build(ctx, root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var timeline bytes.Buffer
	show := demo.Show{
		Root: root, Programs: programs, Cluster: c, Operand: memcached.Image,
		Log: filepath.Join(t.TempDir(), "operator.log"), Out: io.MultiWriter(&timeline, t.Output()),
	}
	if err := show.Run(ctx); err != nil {
		output, _ := os.ReadFile(show.Log)
		t.Fatalf("%v\n%s", err, output)
	}
	inOrder(t, timeline.Bytes(), []string{
		`you +created Memcached cache of size 3`,
		`memcached-operator +created Deployment cache`,
		`deployment-controller +created ReplicaSet cache-`,
		`replicaset-controller +created `,
		`kube-scheduler +found a node for `,
		`kubelet +started `,
		`memcached-operator +reported Available=True`,
		`you +removed Deployment cache`,
		`memcached-operator +created Deployment cache`,
		`memcached-operator +reported Available=True`,
		`you +changed Memcached cache: size 5`,
		`memcached-operator +scaled Deployment cache from 3 to 5`,
		`deployment-controller +scaled ReplicaSet cache-\S+ from 3 to 5`,
		`memcached-operator +reported Available=True`,
		`kube-apiserver +refused it:\s+Memcached\S+ "cache" is invalid: spec.size: Invalid value: 6: spec.size in body should be less than or equal to 5`,
		`autoscaler-controller +changed Memcached cache: size 3`,
		`memcached-operator +scaled Deployment cache from 5 to 3`,
		`you +asked for the end of Memcached cache: it waits for cache.example.com/registry`,
		`kube-apiserver +removed Memcached cache: nothing holds it any more`,
		`garbage-collector +removed Deployment cache: the Memcached is gone`,
		`garbage-collector +removed ReplicaSet cache-\S+: the Deployment is gone`,
		`garbage-collector +asked to end .*: the ReplicaSet is gone`,
		`kubelet +ended `,
	})
	inOrder(t, timeline.Bytes(), []string{ // whose place among the others differs
		`memcached-operator +added a finalizer to Memcached cache: cache.example.com/registry`,
		`memcached-operator +sent PUT to the registry: cache, size 3 .answer 20[01].`,
		`memcached-operator +sent PUT to the registry: cache, size 5 .answer 200.`,
		`memcached-operator +sent PUT to the registry: cache, size 3 .answer 20[01].`,
		`memcached-operator +sent DELETE to the registry .answer 503.`,
		`memcached-operator +sent DELETE to the registry .answer 204.`,
	})
	if bytes.Contains(timeline.Bytes(), []byte("somebody")) {
		t.Error("the timeline does not know who did something")
	}
}

// inOrder wants the actions in a timeline, one after the other: each is looked for behind the one before.
func inOrder(t *testing.T, timeline []byte, actions []string) {
	t.Helper()
	for _, action := range actions {
		at := regexp.MustCompile(action).FindIndex(timeline)
		if at == nil {
			t.Fatalf("the timeline lacks %q, or tells it too early", action)
		}
		timeline = timeline[at[1]:]
	}
}

func cluster(ctx context.Context, t *testing.T) *clusters.Cluster {
	state := t.TempDir()
	owned, err := clusters.New(state)
	if err != nil {
		t.Fatal(err)
	}
	image, err := nodeimage.Resolve(ctx, owned.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := owned.Create(ctx, memcached.Spec(image, owned, t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owned.Delete(context.WithoutCancel(ctx), c.Name); err != nil {
			t.Error(err)
		}
	})
	return c
}
