package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/operator-lab/labs/internal/suite"
)

// Manifest is one object of a YAML file.
type Manifest struct {
	File   string
	Object map[string]any // with the types of JSON
}

// Kind is the object's kind, "" when it has none.
func (m Manifest) Kind() string { kind, _ := m.Object["kind"].(string); return kind }

// Name is the object's name, "" when it has none.
func (m Manifest) Name() string {
	name, _, _ := unstructured.NestedString(m.Object, "metadata", "name")
	return name
}

// Definition reads the object as a custom resource definition. Unknown fields are an error, as for the API server under strict
// validation, and "Default" is not "default".
func (m Manifest) Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(m.Object, crd, true); err != nil {
		return nil, fmt.Errorf("read %s: %w", m.File, err)
	}
	return crd, nil
}

// Definitions picks the custom resource definitions of one kind from manifests.
func Definitions(manifests []Manifest, kind string) []Manifest {
	return slices.DeleteFunc(slices.Clone(manifests), func(m Manifest) bool {
		of, _, _ := unstructured.NestedString(m.Object, "spec", "names", "kind")
		return m.Kind() != "CustomResourceDefinition" || of != kind
	})
}

// ReadManifests reads all objects of the YAML and JSON files in dir, without subfolders. It returns none if dir does not exist.
func ReadManifests(dir string) (all []Manifest, _ error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		switch filepath.Ext(entry.Name()) {
		case ".yaml", ".yml", ".json":
			text, readErr := os.ReadFile(filepath.Join(dir, entry.Name()))
			manifests, parseErr := parse(entry.Name(), string(text))
			all, err = append(all, manifests...), errors.Join(err, readErr, parseErr)
		}
	}
	return all, err
}

func parse(file, text string) (all []Manifest, _ error) {
	objects, err := suite.ReadYAML(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	for _, object := range objects {
		all = append(all, Manifest{File: file, Object: object})
	}
	return all, nil
}
