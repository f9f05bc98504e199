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
)

const root = "../../../.."

// limit is more than the demo needs, so that one that hangs fails with its own words.
const limit = 5 * time.Minute

func TestTheDemoTellsWhatHappened(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	programs, err := demo.Build(ctx, root, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var timeline bytes.Buffer
	show := demo.Show{
		Root: root, Programs: programs, Cluster: cluster(ctx, t), Operand: nodeimage.Operand,
		Log: filepath.Join(t.TempDir(), "operator.log"), Out: io.MultiWriter(&timeline, t.Output()),
	}
	if err := show.Run(ctx); err != nil {
		output, _ := os.ReadFile(show.Log)
		t.Fatalf("%v\n%s", err, output)
	}
	rest := timeline.Bytes()
	for _, action := range []string{
		// One after the other: each is looked for behind the one before.
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
		`you +removed Memcached cache`,
		`garbage-collector +removed Deployment cache: the Memcached is gone`,
		`garbage-collector +removed ReplicaSet cache-\S+: the Deployment is gone`,
		`garbage-collector +asked to end .*: the ReplicaSet is gone`,
		`kubelet +ended `,
	} {
		at := regexp.MustCompile(action).FindIndex(rest)
		if at == nil {
			t.Fatalf("the timeline lacks %q, or tells it too early", action)
		}
		rest = rest[at[1]:]
	}
	if bytes.Contains(timeline.Bytes(), []byte("somebody")) {
		t.Error("the timeline does not know who did something")
	}
}

func cluster(ctx context.Context, t *testing.T) *clusters.Cluster {
	state := t.TempDir()
	kind, err := clusters.NewKind(state)
	if err != nil {
		t.Fatal(err)
	}
	image, err := nodeimage.Resolve(ctx, kind.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	owned := clusters.NewOwned(state, kind)
	c, err := owned.Create(ctx, "demo", clusters.Spec{NodeImage: image.Ref}, false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := owned.Delete(context.WithoutCancel(ctx), c.Name); err != nil {
			t.Error(err)
		}
	})
	if !image.HasOperand {
		archive, err := nodeimage.OperandArchive(ctx, kind.Engine(), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := owned.Provider().LoadImageArchive(ctx, c.Name, archive); err != nil {
			t.Fatal(err)
		}
	}
	return c
}
