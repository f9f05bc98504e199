package generate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kjson "sigs.k8s.io/json"

	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/suite"
)

// Manifest is one object of a YAML file.
type Manifest struct {
	// File is the slash path of the file in its folder.
	File string
	// Object is the object as JSON knows it.
	Object map[string]any
}

// Kind is the object's kind, "" when it has none.
func (m Manifest) Kind() string { kind, _ := m.Object["kind"].(string); return kind }

// Name is the object's name, "" when it has none.
func (m Manifest) Name() string { name, _ := at(m.Object, "metadata", "name").(string); return name }

// Definition reads the object as a custom resource definition. Fields that a definition does not have
// are an error, as they are for the API server under strict validation.
func (m Manifest) Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	crd := &apiextensionsv1.CustomResourceDefinition{}
	data, err := json.Marshal(m.Object)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", m.File, err)
	}
	// As the API server does, which tells "default" from "Default".
	unknown, err := kjson.UnmarshalStrict(data, crd)
	if err = errors.Join(append(unknown, err)...); err != nil {
		return nil, fmt.Errorf("read %s: %w", m.File, err)
	}
	return crd, nil
}

// Definitions picks the custom resource definitions of one kind from manifests.
func Definitions(manifests []Manifest, kind string) []Manifest {
	return slices.DeleteFunc(slices.Clone(manifests), func(m Manifest) bool {
		return m.Kind() != "CustomResourceDefinition" || at(m.Object, "spec", "names", "kind") != kind
	})
}

// Kustomization is a name that kustomize reads, too, although it does not say YAML.
const Kustomization = "Kustomization"

// IsManifest says whether a file of that name is read.
func IsManifest(name string) bool {
	return name == Kustomization || slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(name))
}

// ReadManifests reads all objects of the YAML and JSON files directly in dir. A missing folder has none. A folder of such a
// name, which kustomize reads, is an error.
func ReadManifests(dir string) ([]Manifest, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	files := map[string]string{}
	for _, entry := range entries {
		if !IsManifest(entry.Name()) {
			continue
		}
		data, err := plain.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		files[entry.Name()] = string(data)
	}
	return parseAll(files)
}

func parseAll(files map[string]string) ([]Manifest, error) {
	var all []Manifest
	for _, name := range slices.Sorted(maps.Keys(files)) {
		manifests, err := parse(name, files[name])
		if err != nil {
			return nil, err
		}
		all = append(all, manifests...)
	}
	return all, nil
}

func parse(name, text string) ([]Manifest, error) {
	objects, err := suite.ReadYAML(text)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var all []Manifest
	for _, object := range objects {
		all = append(all, Manifest{File: name, Object: object})
	}
	return all, nil
}

// at follows keys into nested objects; nil when a key is missing.
func at(object any, keys ...string) any {
	for _, key := range keys {
		m, _ := object.(map[string]any)
		object = m[key]
	}
	return object
}
