package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Compare compares two values as JSON has them, field by field. Entries of lists are matched by their
// name where they have one. The result is sorted by path; its texts are short.
func Compare(got, want any) []finding.Field {
	var all []finding.Field
	compare("", got, want, &all)
	return all
}

// Differences compares two objects field by field, without what depends on the version of the generator
// (its annotation) or on the cluster (status, empty timestamps). Entries of lists are matched by their
// name where they have one. The result is sorted by path; its texts are short.
func Differences(got, want Manifest) []finding.Field {
	var all []finding.Field
	compare("", essential(got.Object), essential(want.Object), &all)
	return all
}

// essential is a copy of a manifest without what two right manifests may differ in.
func essential(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "status")
	if spec, ok := object["spec"].(map[string]any); ok && spec["preserveUnknownFields"] == false { // the default, in old tutorials
		spec = maps.Clone(spec)
		delete(spec, "preserveUnknownFields")
		object["spec"] = spec
	}
	metadata, ok := object["metadata"].(map[string]any)
	if !ok {
		return object
	}
	metadata = maps.Clone(metadata)
	object["metadata"] = metadata
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations = maps.Clone(annotations)
		delete(annotations, "controller-gen.kubebuilder.io/version")
		metadata["annotations"] = annotations
		if len(annotations) == 0 {
			delete(metadata, "annotations")
		}
	}
	return object
}

func compare(path string, got, want any, all *[]finding.Field) {
	gotMap, bothMaps := got.(map[string]any)
	wantMap, ok := want.(map[string]any)
	if bothMaps && ok {
		compareMaps(path, gotMap, wantMap, all)
		return
	}
	gotList, bothLists := got.([]any)
	wantList, ok := want.([]any)
	if bothLists && ok && named(gotList) && named(wantList) {
		compareMaps(path, byName(gotList), byName(wantList), all)
		return
	}
	if !reflect.DeepEqual(got, want) {
		*all = append(*all, finding.Field{Path: readable(path), Want: brief(want), Have: brief(got)})
	}
}

func compareMaps(path string, got, want map[string]any, all *[]finding.Field) {
	keys := map[string]bool{}
	for key := range got {
		keys[key] = true
	}
	for key := range want {
		keys[key] = true
	}
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		compare(join(path, key), got[key], want[key], all)
	}
}

func join(path, key string) string {
	if path == "" || strings.HasPrefix(key, "[") {
		return path + key
	}
	return path + "." + key
}

// named says whether every entry of a list has a name of its own to be matched by.
func named(list []any) bool {
	seen := map[string]bool{}
	for _, entry := range list {
		name := nameOf(entry)
		if name == "" || seen[name] {
			return false
		}
		seen[name] = true
	}
	return len(list) > 0
}

// nameOf is what tells an entry of a list from the others: its name, or the type of a condition.
func nameOf(entry any) string {
	if name, _ := at(entry, "name").(string); name != "" {
		return name
	}
	name, _ := at(entry, "type").(string)
	return name
}

func byName(list []any) map[string]any {
	m := map[string]any{}
	for _, entry := range list {
		m["["+nameOf(entry)+"]"] = entry
	}
	return m
}

// readable turns a path through a schema into the field that the schema describes, so that a learner
// reads "spec.size.maximum" rather than the eight steps that lead there.
func readable(path string) string {
	_, schema, found := strings.Cut(path, ".schema.openAPIV3Schema.")
	if !found {
		return path
	}
	return "schema: " + strings.ReplaceAll(strings.TrimPrefix(schema, "properties."), ".properties.", ".")
}

// brief shows a value in one short line.
func brief(value any) string {
	const longest = 100
	if value == nil {
		return "absent"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if short := []rune(string(text)); len(short) > longest {
		return string(short[:longest]) + "…"
	}
	return string(text)
}
