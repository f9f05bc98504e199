package nodeimage

import (
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters/components"
)

// recipe holds everything that decides what is in the images, except for the modules of components and kind.
//
//go:embed recipe contents.go
var recipe embed.FS

// recipeFile is a file of the folder recipe.
func recipeFile(name string) []byte {
	data, err := recipe.ReadFile("recipe/" + name)
	if err != nil {
		panic(err) // the file is compiled in
	}
	return data
}

// recipeDigest names the image that Build makes of the checkout at root.
func recipeDigest(root string, withOperand bool) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, KubernetesVersion, Operand, suite, arch, withOperand)
	err := fs.WalkDir(recipe, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := recipe.ReadFile(name)
		fmt.Fprintf(hash, "%s %x\n", name, sha256.Sum256(data))
		return err
	})
	if err != nil {
		return "", fmt.Errorf("read recipe: %w", err)
	}
	components.Digest(hash, nodeComponents()...)
	kind, err := kindVersion(root)
	if err != nil {
		return "", err
	}
	fmt.Fprintln(hash, kindModule, kind)
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// nodeComponents are the programs of a node and of the images in it.
func nodeComponents() []string {
	return []string{
		"kubeadm", "kubelet", "kubectl", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "etcd", "coredns",
		"containerd", "containerd-shim-runc-v2", "ctr", "host-local", "loopback", "portmap", "ptp", "pause",
	}
}

// kindModule is where the node's own scripts come from.
const kindModule = "sigs.k8s.io/kind"

// kindVersion is the version of kind in the checkout's go.mod.
func kindVersion(root string) (string, error) {
	name := filepath.Join(root, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("look up the version of kind: %w", err)
	}
	file, err := modfile.ParseLax(name, data, nil)
	if err != nil {
		return "", fmt.Errorf("look up the version of kind: %w", err)
	}
	for _, r := range file.Require {
		if r.Mod.Path == kindModule {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("look up the version of kind: %s does not require it", name)
}
