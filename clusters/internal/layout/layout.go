// Package layout says where a cluster's files are, and which names a cluster can have.
package layout

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
)

// Dir is the folder below a state directory that holds everything about one cluster: its record, its kubeconfig, and what
// its provider keeps.
func Dir(state, name string) string { return filepath.Join(state, "clusters", name) }

// MakeDir makes the folder of one cluster, which is closed to other users.
func MakeDir(state, name string) error {
	dir := Dir(state, name)
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	return os.MkdirAll(dir, 0o700)
}

// Kubeconfig is the path of a cluster's kubeconfig, whether it exists or not.
func Kubeconfig(state, name string) string { return filepath.Join(Dir(state, name), "kubeconfig") }

// Artifacts is the folder for the logs of a creation that failed.
func Artifacts(state, name string) string { return filepath.Join(state, "artifacts", name) }

// NodeImageLabel is a label of the node images that package nodeimage makes. All of them give Pods the addresses
// 10.244.0.0/24, so a cluster of them has one node.
const NodeImageLabel = "operator-lab.inputs"

// clusterName is what kind allows and a file name can be.
var clusterName = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$`)

// CheckName says what is wrong with the name of a cluster, nil when it can be one.
func CheckName(name string) error {
	if !clusterName.MatchString(name) || len(name) > 50 {
		return fmt.Errorf("cluster name %q: use up to 50 lower case letters, digits and dashes", name)
	}
	return nil
}
