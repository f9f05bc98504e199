package generate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"

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
	if err := sigsyaml.UnmarshalStrict(data, crd); err != nil {
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

// yamlLimit is how much YAML is read at once. A parsed object takes a multiple of its text, and a learner may be nobody
// that one trusts. The definition of a Memcached takes 10 KB.
const yamlLimit = 4 << 20

// ReadManifests reads all objects of the YAML and JSON files directly in dir. A missing folder has none. More than 4 MiB are an error.
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
		if ext := filepath.Ext(entry.Name()); entry.IsDir() || (ext != ".yaml" && ext != ".yml" && ext != ".json") {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
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
	if size > yamlLimit {
		return nil, fmt.Errorf("there are %d MiB of YAML, and at most %d are read", size>>20, yamlLimit>>20)
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
	if err := suite.CheckYAML(text); err != nil {
		return nil, fmt.Errorf("read %s: %w", name, err)
	}
	var all []Manifest
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewBufferString(text), 4096)
	for {
		var value any
		err := decoder.Decode(&value)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		for _, object := range objects(value) {
			all = append(all, Manifest{File: name, Object: object})
		}
	}
}

// objects are the objects of one document: itself, or the items of a List. What is none, such as a JSON patch of
// kustomize, has none.
func objects(value any) (all []map[string]any) {
	object, _ := value.(map[string]any)
	items, isList := object["items"].([]any)
	if object["kind"] != "List" || !isList {
		if len(object) > 0 {
			all = append(all, object)
		}
		return all
	}
	for _, item := range items {
		all = append(all, objects(item)...)
	}
	return all
}

// at follows keys into nested objects; nil when a key is missing.
func at(object any, keys ...string) any {
	for _, key := range keys {
		m, _ := object.(map[string]any)
		object = m[key]
	}
	return object
}
