// Package demotest runs the demo on a real cluster. Its test needs a container engine and a node image.
package demotest

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/demo"
	"github.com/example/operator-lab/labs/internal/memcached"
)

const root = "../../../.."

// limit is more than both need, so that what hangs fails with its own words.
const limit = 5 * time.Minute

// TestOnKind performs lab 0 and the demo in the same namespace of one cluster.
func TestOnKind(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out bytes.Buffer
	path := os.Getenv("PATH") + string(filepath.ListSeparator) + kubectl(ctx, t)
	stage := demo.Stage{Cluster: cluster(ctx, t), Operand: memcached.Image, Dir: t.TempDir(), Path: path, Out: io.MultiWriter(&out, t.Output())}
	t.Run("lab 0", func(t *testing.T) { lab0(ctx, t, stage, &out) })
	t.Run("demo", func(t *testing.T) { show(ctx, t, stage, &out) })
}

// lab0 wants the answers that lab 0 teaches to be those of a real cluster.
func lab0(ctx context.Context, t *testing.T, stage demo.Stage, out *bytes.Buffer) {
	quiz, err := demo.ReadQuiz(root + "/labs/00-who-did-that/quiz.yaml")
	if err != nil {
		t.Fatal(err)
	}
	right, judged, err := quiz.Run(ctx, stage, demo.Answers{
		"makes-the-replicaset": "deployment-controller", "makes-the-pods": "replicaset-controller", "chooses-the-node": "kube-scheduler",
		"starts-the-containers": "kubelet", "replaces-a-pod": "replicaset-controller", "undoes-your-change": "deployment-controller",
		"replaces-a-lone-pod": "nobody", "clears-up": "garbage-collector",
	})
	if err != nil || right != 8 || judged != 8 {
		t.Errorf("%d of %d are right, %v", right, judged, err)
	}
	inOrder(t, out.Bytes(), `you +deleted Pod web-`, `you +scaled ReplicaSet \S+ from 2 to 4`)
}

func show(ctx context.Context, t *testing.T, stage demo.Stage, out *bytes.Buffer) {
	bin := t.TempDir()
	if err := demo.Build(ctx, root, bin); err != nil {
		t.Fatal(err)
	}
	if err := stage.Show(ctx, root, bin); err != nil {
		log, _ := os.ReadFile(filepath.Join(stage.Dir, "operator.log"))
		t.Fatalf("%v\n%s", err, log)
	}
	inOrder(t, out.Bytes(),
		`you +created Memcached cache of size 3`,
		`memcached-operator +reported Memcached cache: .*Available=True`,
		`you +deleted Deployment cache`,
		`memcached-operator +created Deployment cache`,
		`memcached-operator +reported Memcached cache: .*Available=True`,
		`you +changed Memcached cache: size 5`,
		`memcached-operator +scaled Deployment cache from 3 to 5`,
		`deployment-controller +scaled ReplicaSet cache-\S+ from 3 to 5`,
		`memcached-operator +reported Memcached cache: .*Available=True`,
		`"cache" is invalid: spec.size: Invalid value: 6: spec.size in body should be less than or equal to 5`,
		`autoscaler-controller +changed Memcached cache: size 3`,
		`memcached-operator +scaled Deployment cache from 5 to 3`,
		`you +deleted Memcached cache`,
		`garbage-collector +deleted ReplicaSet cache-\S+: the Deployment is gone`,
		`garbage-collector +deleted .*: the ReplicaSet is gone`,
		`kubelet +ended `,
	)
	inOrder(t, out.Bytes(), `deployment-controller +created ReplicaSet cache-`, `replicaset-controller +created `, `kube-scheduler +found a node for `, `kubelet +started `)
	if bytes.Contains(out.Bytes(), []byte("somebody")) {
		t.Error("the demo does not know who did something")
	}
}

// inOrder wants the actions in a text, each behind the one before.
func inOrder(t *testing.T, text []byte, actions ...string) {
	t.Helper()
	text = regexp.MustCompile(`\s+`).ReplaceAll(text, []byte(" ")) // lines are folded
	for _, action := range actions {
		at := regexp.MustCompile(action).FindIndex(text)
		if at == nil {
			t.Fatalf("%q is missing, or told too early", action)
		}
		text = text[at[1]:]
	}
}

// kubectl is a folder with one, which is built if the cache has none.
func kubectl(ctx context.Context, t *testing.T) string {
	t.Helper()
	cache, err := components.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	programs, err := (&components.Builder{CacheDir: cache, OS: runtime.GOOS, Download: true}).Build(ctx, "kubectl")
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(programs["kubectl"])
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
