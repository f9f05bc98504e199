package clusters

import (
	"bytes"
	"cmp"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"

	"github.com/example/operator-lab/clusters/internal/layout"
)

// DefaultNodeImage is the node image that kind of this version was released
// with, pinned by digest.
const DefaultNodeImage = defaults.Image

// labConfig is the kind configuration of a lab cluster, which is what an empty [Spec.Config] means.
//
//go:embed kind.yaml
var labConfig []byte

// kindConfig is the kind configuration that spec asks for.
func kindConfig(spec Spec) (*v1alpha4.Cluster, error) {
	raw := spec.Config
	if raw == nil {
		raw = labConfig
	}
	config := &v1alpha4.Cluster{}
	decoder := yaml.NewDecoder(bytes.NewReader(raw))
	decoder.KnownFields(true)
	if err := decoder.Decode(config); err != nil {
		return nil, fmt.Errorf("read kind configuration: %w", err)
	}
	if spec.Workers < 0 {
		return nil, fmt.Errorf("read kind configuration: Spec.Workers is %d, and must not be negative", spec.Workers)
	}
	if spec.APIServerAddress != "" {
		if err := layout.CheckAddress(spec.APIServerAddress); err != nil {
			return nil, err
		}
		// kind puts it into the certificate of the API server, too.
		config.Networking.APIServerAddress = spec.APIServerAddress
	}
	if len(config.Nodes) == 0 {
		config.Nodes = []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}}
	}
	for range spec.Workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole})
	}
	for i := range config.Nodes {
		config.Nodes[i].Image = cmp.Or(spec.Image, config.Nodes[i].Image, DefaultNodeImage)
	}
	config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, bootstrapToken()...)
	v1alpha4.SetDefaultsCluster(config)
	planes := 0
	for _, node := range config.Nodes {
		if node.Role == v1alpha4.ControlPlaneRole {
			planes++
		}
	}
	if planes != 1 {
		return nil, fmt.Errorf("read kind configuration: it has %d control-plane nodes: %w", planes, errOneControlPlane)
	}
	return config, nil
}

// bootstrapToken draws the token with which nodes join, and lets it end soon. kind's own is the same for every cluster and stands
// in its source (pkg/cluster/internal/kubeadm/const.go): for a day, whoever reaches the API server could be a node with it.
func bootstrapToken() []string {
	drawn := strings.ToLower(rand.Text())
	token := drawn[:6] + "." + drawn[6:22]
	return []string{
		"kind: InitConfiguration\nbootstrapTokens: [{token: " + token + ", ttl: 15m0s}]\n",
		"kind: JoinConfiguration\ndiscovery: {bootstrapToken: {token: " + token + "}}\n",
	}
}

// errOneControlPlane: several control planes need kind's load balancer. It is an image that no
// node image contains, so kind would pull it without having been asked to.
var errOneControlPlane = errors.New("exactly one is supported")
