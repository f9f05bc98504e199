package imagetest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/nodeimage"
)

// sideBySide is the number of clusters that run at once: the fifth is the one that finds out what a machine lacks.
const sideBySide = 5

// atOnce is how many are created at the same time: all five on two cores keep each other waiting.
const atOnce = 2

// Whole means: all that Kubernetes brings along runs and did not have to be started again, an operand runs under the
// strictest Pod security, and a Pod reaches it by the name of a Service. With too few inotify instances a fifth
// cluster looks created and is not whole.
func TestFiveClustersSideBySideAreWhole(t *testing.T) {
	made, kind, image := createClusters(t, sideBySide)
	probe := probeArchive(t)
	t.Run("whole", func(t *testing.T) {
		for _, cluster := range made {
			t.Run(cluster.Name, func(t *testing.T) {
				t.Parallel()
				load(t, kind, cluster.Name, probe)
				if !image.HasOperand {
					load(t, kind, cluster.Name, operandArchive(t, kind.Engine()))
				}
				client := connect(t, cluster)
				startOperand(t, client)
				runProbe(t, client)
				systemPodsRunWithoutRestart(t, client)
			})
		}
	})
}

// createClusters makes n clusters at once, all of which are deleted when the test has ended.
func createClusters(t *testing.T, n int) ([]*clusters.Cluster, *clusters.Manager, nodeimage.Image) {
	t.Helper()
	state, err := filepath.Abs("../../../.lab")
	if err != nil {
		t.Fatal(err)
	}
	kind, err := clusters.New(state, clusters.WithLogger(func(line string) { t.Log(line) }))
	if err != nil {
		t.Fatal(err)
	}
	image, err := nodeimage.Resolve(t.Context(), kind.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(atOnce)
	made := make([]*clusters.Cluster, n)
	for i := range made {
		group.Go(func() (err error) {
			made[i], err = kind.Create(ctx, clusters.Spec{Image: image.Ref})
			return err
		})
	}
	err = group.Wait()
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		var group errgroup.Group
		for _, cluster := range made {
			if cluster != nil {
				group.Go(func() error { return kind.Delete(ctx, cluster.Name) })
			}
		}
		if err := group.Wait(); err != nil {
			t.Errorf("delete clusters: %v", err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return made, kind, image
}

func load(t *testing.T, kind *clusters.Manager, cluster, archive string) {
	t.Helper()
	if err := kind.Provider().LoadImageArchive(t.Context(), cluster, archive); err != nil {
		t.Fatal(err)
	}
}

// operandArchive is made once and shared with the labs.
func operandArchive(t *testing.T, engine string) string {
	t.Helper()
	cache, err := components.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := nodeimage.OperandArchive(t.Context(), engine, cache)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}

func connect(t *testing.T, cluster *clusters.Cluster) kubernetes.Interface {
	t.Helper()
	config, err := cluster.RESTConfig()
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}
