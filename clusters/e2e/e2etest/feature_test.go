package e2etest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/envfuncs"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/e2e"
	"github.com/example/operator-lab/clusters/nodeimage"
)

var testenv env.Environment

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// run is what a project with tests in e2e-framework has in its TestMain, and
// after it the question whether the cluster is gone.
func run(m *testing.M) (int, error) {
	ctx := context.Background()
	state, err := os.MkdirTemp("", "e2etest-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(state)
	manager, err := clusters.New(state)
	if err != nil {
		return 0, err
	}
	image, err := nodeimage.Resolve(ctx, manager.Engine(), os.Getenv("NODE_IMAGE"))
	if err != nil {
		return 0, err
	}
	name := fmt.Sprintf("lab-e2e-%d", os.Getpid())

	if err := engine(manager, emptyArchive(), "import", "-", localImage); err != nil {
		return 0, err
	}
	defer func() { _ = engine(manager, nil, "rmi", localImage) }()

	testenv = env.New()
	testenv.Setup(
		envfuncs.CreateClusterWithOpts(e2e.New(manager), name,
			e2e.WithSpec(clusters.Spec{Image: image.Ref})),
		envfuncs.LoadImageToCluster(name, localImage),
	)
	testenv.Finish(envfuncs.DestroyCluster(name))
	code := testenv.Run(m)

	names, err := manager.Provider().List(ctx)
	if err == nil && slices.Contains(names, name) {
		err = fmt.Errorf("cluster %s is still there after DestroyCluster", name)
	}
	if owners, listErr := manager.List(ctx); err == nil && len(owners) > 0 {
		err = errors.Join(fmt.Errorf("records left: %+v", owners), listErr)
	}
	return code, err
}

// localImage is an empty image that only the container engine has.
const localImage = "operator-lab.local/e2etest:1"

// emptyArchive is a tar without files.
func emptyArchive() *bytes.Reader { return bytes.NewReader(make([]byte, 1024)) }

func engine(manager *clusters.Manager, stdin io.Reader, args ...string) error {
	cmd := exec.Command(manager.Engine(), args...)
	cmd.Stdin = stdin
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s %v: %w: %s", manager.Engine(), args, err, out)
	}
	return nil
}

func TestAnImageOfTheEngineReachesTheNode(t *testing.T) {
	manager, err := clusters.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	node := fmt.Sprintf("lab-e2e-%d-control-plane", os.Getpid())
	out, err := exec.Command(manager.Engine(), "exec", node, "ctr", "-n", "k8s.io", "images", "ls", "-q").CombinedOutput()
	if err != nil || !slices.Contains(strings.Fields(string(out)), localImage) {
		t.Errorf("images of the node: %s (%v), want %s among them", out, err, localImage)
	}
}

func TestTheFrameworkFindsItsCluster(t *testing.T) {
	feature := features.New("cluster").
		Assess("is ready and private", func(ctx context.Context, t *testing.T, cfg *envconf.Config) context.Context {
			name := fmt.Sprintf("lab-e2e-%d", os.Getpid())
			c, ok := ctx.Value(support.ClusterNameContextKey(name)).(support.E2EClusterProviderWithImageLoader)
			if !ok {
				t.Fatalf("the framework does not know cluster %s", name)
			}
			if c.GetKubeconfig() != cfg.KubeconfigFile() {
				t.Errorf("kubeconfig %s, the framework uses %s", c.GetKubeconfig(), cfg.KubeconfigFile())
			}
			if got, want := c.GetKubectlContext(), "kind-"+name; got != want {
				t.Errorf("context = %s, want %s", got, want)
			}
			return ctx
		}).Feature()
	testenv.Test(t, feature)
}
