package suite

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	yamlnodes "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/yaml"
	sigsyaml "sigs.k8s.io/yaml"
)

// ReadYAML reads the objects of YAML with any number of documents: each document's own, or the items of a list, which for kustomize
// is every kind whose name ends in List. What is no object, such as a JSON patch of kustomize, has none.
func ReadYAML(text string) ([]map[string]any, error) {
	if err := CheckYAML(text); err != nil {
		return nil, err
	}
	var all []map[string]any
	documents := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
	for {
		document, err := documents.Read()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err == nil {
			// Again, because for this reader a document begins behind the line `---#`, which YAML takes for text.
			err = CheckYAML(string(document))
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

// yamlDepth is how deep values may lie in each other. Those of the definition of a Memcached lie 20 deep.
const yamlDepth = 100

// CheckYAML says what is in YAML that must not be decoded. An alias repeats a value without repeating its text, so that a
// file of 300 KB becomes gigabytes; what lies very deep takes more stack, or more text in a refusal, than there is.
// controller-gen writes neither.
func CheckYAML(text string) error {
	decoder := yamlnodes.NewDecoder(strings.NewReader(text))
	for {
		var document yamlnodes.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = checkNode(&document, 0)
		}
		if err != nil {
			return err
		}
	}
}

func checkNode(node *yamlnodes.Node, depth int) error {
	switch {
	case node.Kind == yamlnodes.AliasNode || node.Anchor != "":
		return fmt.Errorf("line %d: anchors and aliases are not read here: write the value out", node.Line)
	case depth > yamlDepth:
		return fmt.Errorf("line %d: more than %d values lie in each other", node.Line, yamlDepth)
	}
	for _, child := range node.Content {
		if err := checkNode(child, depth+1); err != nil {
			return err
		}
	}
	return nil
}
