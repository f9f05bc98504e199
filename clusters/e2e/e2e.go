// Package e2e lets the tests of sigs.k8s.io/e2e-framework run on clusters of a clusters.Manager.
//
// The framework's own kind provider runs a kind program, installs one when there is none, takes over a cluster of the same
// name and edits ~/.kube/config. This one does nothing of the kind:
//
//	provider := e2e.New(manager) // removes what a killed run left, if its state folder is the same
//	testenv.Setup(envfuncs.CreateCluster(provider, name))
//	testenv.Finish(envfuncs.DestroyCluster(name))
package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/support"

	"github.com/example/operator-lab/clusters"
)

// Cluster is one cluster in the eyes of the framework. The methods that
// configure it return a changed copy, so one Cluster can be the origin of many.
type Cluster struct {
	manager *clusters.Manager
	name    string
	spec    clusters.Spec
	// misuse is what Create reports about an earlier call that has no meaning here.
	misuse error

	// cluster is known once it exists.
	cluster *clusters.Cluster
}

var _ support.E2EClusterProviderWithImageLoader = (*Cluster)(nil)

// New makes a manager a provider of the framework.
func New(m *clusters.Manager) *Cluster { return &Cluster{manager: m} }

// WithSpec chooses the node image, the number of workers and the configuration.
// Other providers ignore it.
func WithSpec(spec clusters.Spec) support.ClusterOpts {
	return func(p support.E2EClusterProvider) {
		if c, ok := p.(*Cluster); ok {
			c.spec = spec
		}
	}
}

// with returns a changed copy.
func (c *Cluster) with(change func(*Cluster)) *Cluster {
	dup := *c
	change(&dup)
	return &dup
}

// SetDefaults returns a copy: the zero Spec is the default.
func (c *Cluster) SetDefaults() support.E2EClusterProvider { return c.with(func(*Cluster) {}) }

// WithName sets the exact name of the cluster.
func (c *Cluster) WithName(name string) support.E2EClusterProvider {
	return c.with(func(c *Cluster) { c.name = name })
}

// WithVersion makes Create fail, unless version is empty: the node image of [WithSpec] decides on the version of Kubernetes.
func (c *Cluster) WithVersion(version string) support.E2EClusterProvider {
	return c.refuse("version", version)
}

// WithPath makes Create fail, unless path is empty: no program is run.
func (c *Cluster) WithPath(path string) support.E2EClusterProvider { return c.refuse("path", path) }

func (c *Cluster) refuse(what, value string) *Cluster {
	return c.with(func(c *Cluster) {
		if value != "" {
			c.misuse = fmt.Errorf("%s %q means nothing here: use e2e.WithSpec", what, value)
		}
	})
}

// WithOpts applies opts, such as [WithSpec], to a copy.
func (c *Cluster) WithOpts(opts ...support.ClusterOpts) support.E2EClusterProvider {
	return c.with(func(c *Cluster) {
		for _, opt := range opts {
			opt(c)
		}
	})
}

// Create makes the cluster and returns the path of its kubeconfig. It takes no
// arguments, and fails when a cluster of that name exists.
func (c *Cluster) Create(ctx context.Context, args ...string) (string, error) {
	if err := c.refuse("argument", strings.Join(args, " ")).misuse; err != nil {
		return "", fmt.Errorf("create cluster %s: %w", c.name, err)
	}
	spec := c.spec
	spec.Name, spec.Label = c.name, "e2e"
	cluster, err := c.manager.Create(ctx, spec)
	if err != nil {
		return "", err
	}
	c.cluster = cluster
	return cluster.Kubeconfig, nil
}

// CreateWithConfig is Create with a configuration in the provider's own format.
func (c *Cluster) CreateWithConfig(ctx context.Context, configFile string) (string, error) {
	config, err := os.ReadFile(configFile)
	if err != nil {
		return "", fmt.Errorf("create cluster %s: %w", c.name, err)
	}
	c.spec.Config = config
	return c.Create(ctx)
}

// GetKubeconfig is the path of the kubeconfig, "" before Create.
func (c *Cluster) GetKubeconfig() string {
	if c.cluster == nil {
		return ""
	}
	return c.cluster.Kubeconfig
}

// GenerateKubeconfig is GetKubeconfig: the file is the cluster's own and stays
// as it was made.
func (c *Cluster) GenerateKubeconfig(...string) (string, error) {
	if c.cluster == nil {
		return "", fmt.Errorf("kubeconfig of cluster %s: %w", c.name, errNotCreated)
	}
	return c.cluster.Kubeconfig, nil
}

var errNotCreated = errors.New("the cluster has not been created")

// GetKubectlContext is the current context of the kubeconfig, "" before Create.
func (c *Cluster) GetKubectlContext() string {
	config, err := clientcmd.LoadFromFile(c.GetKubeconfig())
	if err != nil {
		return ""
	}
	return config.CurrentContext
}

// ExportLogs writes the logs of the nodes into the folder dest.
func (c *Cluster) ExportLogs(ctx context.Context, dest string) error {
	return c.manager.Provider().CollectLogs(ctx, c.name, dest)
}

// Destroy removes the cluster. Doing so twice is no error.
func (c *Cluster) Destroy(ctx context.Context) error { return c.manager.Delete(ctx, c.name) }

// WaitForControlPlane checks that the cluster is ready, which it is since Create
// returned. When it is not any more it removes the cluster, because the
// framework would forget it.
func (c *Cluster) WaitForControlPlane(ctx context.Context, _ klient.Client) error {
	if c.cluster == nil {
		return fmt.Errorf("wait for cluster %s: %w", c.name, errNotCreated)
	}
	if err := c.manager.Healthy(ctx, c.cluster); err != nil {
		return errors.Join(err, c.manager.Delete(context.WithoutCancel(ctx), c.name))
	}
	return nil
}

// KubernetesRestConfig is the configuration of a client, nil before Create.
func (c *Cluster) KubernetesRestConfig() *rest.Config {
	if c.cluster == nil {
		return nil
	}
	config, err := c.cluster.RESTConfig()
	if err != nil {
		return nil
	}
	return config
}

// LoadImage brings an image of the container engine into every node. It fails with errors.ErrUnsupported on a provider
// without an engine.
func (c *Cluster) LoadImage(ctx context.Context, image string, _ ...string) error {
	return c.manager.LoadImage(ctx, c.name, image)
}

// LoadImageArchive brings the images of a docker-archive tar into every node.
func (c *Cluster) LoadImageArchive(ctx context.Context, archive string, _ ...string) error {
	return c.manager.Provider().LoadImageArchive(ctx, c.name, archive)
}
