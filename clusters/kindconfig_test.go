package clusters

import (
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func TestDefaultConfig(t *testing.T) {
	config, err := kindConfig(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Nodes) != 1 || config.Nodes[0].Role != v1alpha4.ControlPlaneRole {
		t.Errorf("nodes = %+v, want one control plane", config.Nodes)
	}
	if config.Networking.APIServerAddress != "127.0.0.1" {
		t.Errorf("API server listens on %q, want 127.0.0.1 alone", config.Networking.APIServerAddress)
	}
}

// kind converts patches to the kubeadm version of the node only when they name
// none themselves.
func TestPatchesNameNoVersion(t *testing.T) {
	config, err := kindConfig(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, patch := range config.KubeadmConfigPatches {
		var meta struct {
			Kind       string `yaml:"kind"`
			APIVersion string `yaml:"apiVersion"`
		}
		if err := yaml.Unmarshal([]byte(patch), &meta); err != nil {
			t.Fatal(err)
		}
		if meta.APIVersion != "" {
			t.Errorf("patch of %s names apiVersion %s", meta.Kind, meta.APIVersion)
		}
		kinds[meta.Kind] = true
	}
	for _, kind := range []string{"ClusterConfiguration", "KubeletConfiguration"} {
		if !kinds[kind] {
			t.Errorf("no patch of %s", kind)
		}
	}
}

func TestWorkers(t *testing.T) {
	config, err := kindConfig(Spec{Workers: 2, Image: "example/node:v1"})
	if err != nil {
		t.Fatal(err)
	}
	if len(config.Nodes) != 3 {
		t.Fatalf("%d nodes, want 3", len(config.Nodes))
	}
	for i, node := range config.Nodes {
		if node.Image != "example/node:v1" {
			t.Errorf("node %d has image %q", i, node.Image)
		}
		if i > 0 && node.Role != v1alpha4.WorkerRole {
			t.Errorf("node %d is a %s, want a worker", i, node.Role)
		}
	}
}

func TestConfigRefused(t *testing.T) {
	two := []byte("kind: Cluster\napiVersion: kind.x-k8s.io/v1alpha4\nnodes:\n- role: control-plane\n- role: control-plane\n")
	if _, err := kindConfig(Spec{Config: two}); err == nil || !strings.Contains(err.Error(), "exactly one") {
		t.Errorf("two control planes: %v, want a refusal (kind would pull a load balancer)", err)
	}
	if _, err := kindConfig(Spec{Config: []byte("nodes: 3")}); err == nil {
		t.Error("a configuration of the wrong shape was accepted")
	}
	if _, err := kindConfig(Spec{Config: []byte("featureGate: {A: true}")}); err == nil || !strings.Contains(err.Error(), "featureGate") {
		t.Errorf("a misspelt key: %v", err)
	}
	if _, err := kindConfig(Spec{APIServerAddress: "192.168.1.5"}); err == nil {
		t.Error("an address was accepted that others can reach")
	}
	if _, err := kindConfig(Spec{Workers: -1}); err == nil {
		t.Error("-1 workers were accepted")
	}
}
