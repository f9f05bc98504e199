package clusters

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
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
	if spec.APIServerAddress != "" && spec.APIServerAddress != "127.0.0.1" {
		return nil, fmt.Errorf("kind clusters answer on 127.0.0.1 alone, not on %s", spec.APIServerAddress)
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
	v1alpha4.SetDefaultsCluster(config)
	planes := 0
	for _, node := range config.Nodes {
		if node.Role == v1alpha4.ControlPlaneRole {
			planes++
		}
	}
	if planes != 1 { // several need kind's load balancer: an image that no node image contains, so kind would pull it unasked
		return nil, fmt.Errorf("read kind configuration: it has %d control-plane nodes, and exactly one is supported", planes)
	}
	return config, nil
}
