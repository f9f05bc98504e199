package generate

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/example/operator-lab/labs/internal/finding"
)

// CauseNotBuilt is the cause when kustomize cannot build a folder.
const CauseNotBuilt = "not-built"

// Kustomize is what kustomize builds of a folder of the workspace, in a namespace and with a prefix of all names. It writes nothing into
// the workspace. A folder that kustomize cannot build is a finding.
func Kustomize(workspace, folder, namespace, prefix string) (objects []*unstructured.Unstructured, err error) {
	dir, err := os.MkdirTemp("", "kustomize-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if dir, err = filepath.EvalSymlinks(dir); err != nil { // kustomize resolves links, too
		return nil, err
	}
	path, err := filepath.Rel(dir, filepath.Join(workspace, filepath.FromSlash(folder)))
	if err != nil {
		return nil, err
	}
	overlay := fmt.Sprintf("namespace: %s\nnamePrefix: %q\nresources: [%q]\n", namespace, prefix, path)
	if err := os.WriteFile(filepath.Join(dir, "kustomization.yaml"), []byte(overlay), 0o600); err != nil {
		return nil, err
	}
	built, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), dir)
	if err != nil {
		return nil, finding.New(CauseNotBuilt, "manifests in "+folder+" that `kustomize build` accepts", "%v", err)
	}
	for _, resource := range built.Resources() {
		o := &unstructured.Unstructured{}
		data, err := resource.MarshalJSON()
		if err := cmp.Or(err, o.UnmarshalJSON(data)); err != nil {
			return nil, err
		}
		objects = append(objects, o)
	}
	return objects, nil
}
