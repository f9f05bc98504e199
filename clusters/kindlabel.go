package clusters

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// Each creation draws a label, writes it into the cluster's folder, and gives it to its nodes. Only nodes that carry the
// label in the folder are ever deleted: a cluster that somebody else made under the same name, from another state folder
// for example, stays.
//
// kind lets nobody set the labels of a container, so the label is the target of a mount. Its source is a folder that kind
// mounts itself, so it can be mounted wherever kind works.
const (
	labelSource = "/lib/modules"
	labelTarget = "/kind/owner/"
)

func (k *Kind) labelFile(name string) string { return filepath.Join(Dir(k.state, name), "label") }

// drawLabel draws the label of a new cluster and writes it down. The error is [ErrExists] when there is one of that name.
func (k *Kind) drawLabel(name string) (label string, err error) {
	if err := MakeDir(k.state, name); err != nil {
		return "", err
	}
	file, err := os.OpenFile(k.labelFile(name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return "", ErrExists
	}
	if err != nil {
		return "", err
	}
	random := make([]byte, 8)
	rand.Read(random) // never fails
	label = hex.EncodeToString(random)
	_, err = file.WriteString(label)
	return label, errors.Join(err, file.Sync(), file.Close())
}

// label is the label of the cluster of that name, "" when this state folder has none.
func (k *Kind) label(name string) (string, error) {
	data, err := os.ReadFile(k.labelFile(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return string(data), err
}

// addLabel adds the label to every node of a configuration.
func addLabel(config *v1alpha4.Cluster, label string) {
	for i := range config.Nodes {
		config.Nodes[i].ExtraMounts = append(config.Nodes[i].ExtraMounts,
			v1alpha4.Mount{HostPath: labelSource, ContainerPath: labelTarget + label, Readonly: true})
	}
}

// ownNodes are the IDs of the containers of a cluster that carry the label, and the names of those that do not.
func (k *Kind) ownNodes(ctx context.Context, name, label string) (own, others []string, err error) {
	list, err := k.nodes(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	for _, node := range list {
		const format = "{{.Id}}{{range .Mounts}} {{.Destination}}{{end}}"
		out, err := runEngine(ctx, k.engine, "container", "inspect", "--format", format, node.String())
		id, mounts, _ := strings.Cut(out, " ")
		switch {
		case err != nil && k.vanished(ctx, name, node):
		case err != nil:
			return nil, nil, fmt.Errorf("look at node %s: %w", node, err)
		case slices.Contains(strings.Fields(mounts), labelTarget+label):
			own = append(own, id)
		default:
			others = append(others, node.String())
		}
	}
	return own, others, nil
}
