package suite

import (
	"bufio"
	"errors"
	"io"
	"strings"

	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// ReadYAML reads the objects of YAML with any number of documents: each document's own, or the items of a list, which for kustomize
// is every kind whose name ends in List. What is no object, such as a JSON patch of kustomize, has none.
func ReadYAML(text string) ([]map[string]any, error) {
	var all []map[string]any
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		var value any
		if err == nil {
			err = sigsyaml.Unmarshal(document, &value)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, objects(value)...)
	}
}

// objects are the objects of one document.
func objects(document any) (all []map[string]any) {
	object, _ := document.(map[string]any)
	kind, _ := object["kind"].(string)
	items, isList := object["items"].([]any)
	if !strings.HasSuffix(kind, "List") || !isList {
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
