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

// partsLimit is how many maps and lists, and entries of lists, a definition may have. One whose spec holds a whole
// PodTemplateSpec has 2,000. A schema takes half a kilobyte here, even when it is {}, and a complaint of the API server when it
// is wrong.
const partsLimit = 6_000

// defaultsLimit is how many bytes of JSON the defaults of a definition may make of an object whose structs are all there and empty.
// etcd stores no larger one, but the API server adds those of a status whenever it reads one, and defaults may be in the entries of
// others.
const defaultsLimit = 1 << 20

// defaults is how many bytes the defaults of all versions add to an empty object, or some more than [defaultsLimit].
func defaults(definition map[string]any) int {
	versions, _ := at(definition, "spec", "versions").([]any)
	left := defaultsLimit
	for _, version := range versions {
		schema, _ := at(version, "schema", "openAPIV3Schema").(map[string]any)
		fill(schema, map[string]any{}, &left)
	}
	return defaultsLimit - left
}

// fill takes from left what the API server adds to a value, to one of null or none the default. Each step takes something, so that
// it ends.
func fill(schema map[string]any, value any, left *int) {
	if *left--; *left < 0 {
		return
	}
	switch {
	case value != nil:
	case schema["default"] != nil:
		value = schema["default"]
		text, _ := json.Marshal(value)
		*left -= len(text)
	case schema["properties"] != nil:
		value = map[string]any{} // somebody may write one
	}
	switch value := value.(type) {
	case map[string]any:
		properties, _ := schema["properties"].(map[string]any)
		for name, property := range properties {
			property, _ := property.(map[string]any)
			there := value[name]
			if there == nil {
				*left -= len(name)
			}
			fill(property, there, left)
		}
		others, _ := schema["additionalProperties"].(map[string]any)
		for name, there := range value {
			if properties[name] == nil {
				fill(others, there, left)
			}
		}
	case []any:
		items, _ := schema["items"].(map[string]any)
		for _, item := range value {
			fill(items, item, left)
		}
	}
}

// Definition reads the object as a custom resource definition. Fields that a definition does not have
// are an error, as they are for the API server under strict validation. So are more than 6,000 maps, lists and entries of lists, and
// defaults that come to more than 1 MiB.
func (m Manifest) Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	if parts(m.Object) > partsLimit {
		return nil, fmt.Errorf("read %s: a definition has more than %d maps, lists and entries of lists", m.File, partsLimit)
	}
	if defaults(m.Object) > defaultsLimit {
		return nil, fmt.Errorf("read %s: the defaults of a definition make more than %d KiB of an empty object", m.File, defaultsLimit>>10)
	}
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

// ReadManifests reads all objects of the YAML and JSON files directly in dir. A missing folder has none. More than 4 MiB are an error, and
// so is a folder of such a name, which kustomize reads.
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
		data, err := plain.ReadFile(filepath.Join(dir, entry.Name()), suite.FileLimit)
		if err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		}
		files[entry.Name()] = string(data)
	}
	return parseAll(files)
}

func parseAll(files map[string]string) ([]Manifest, error) {
	size := 0
	for _, text := range files {
		size += len(text)
	}
	if size > suite.FileLimit {
		return nil, fmt.Errorf("there are %d MiB of YAML, and at most %d are read", size>>20, suite.FileLimit>>20)
	}
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

// parts counts the maps, the lists and the entries of lists in a value, itself included.
func parts(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		n = 1
		for _, field := range value {
			n += parts(field)
		}
	case []any:
		n = 1
		for _, item := range value {
			n += max(1, parts(item))
		}
	}
	return n
}
