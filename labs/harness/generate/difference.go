package generate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Difference is one place in which two objects differ. Got and Want are short texts; one of them is ""
// when that side has nothing there.
type Difference struct{ Path, Got, Want string }

// String is the difference as one line of a report.
func (d Difference) String() string { return d.Field().String() }

// Field is the difference in the form of a finding.
func (d Difference) Field() finding.Field {
	return finding.Field{Path: d.Path, Want: cmp.Or(d.Want, nothing), Have: cmp.Or(d.Got, nothing)}
}

// nothing stands for a side of a difference that has no such field.
const nothing = "nothing"

// Fields are the differences in the form of a finding.
func Fields(differences []Difference) []finding.Field {
	var fields []finding.Field
	for _, d := range differences {
		fields = append(fields, d.Field())
	}
	return fields
}

// Compare compares two values as JSON has them, field by field. Entries of lists are matched by their
// name where they have one. The result is sorted by path.
func Compare(got, want any) []Difference {
	var all []Difference
	compare("", got, want, &all)
	return all
}

// Differences compares two objects field by field, without what depends on the version of the generator
// (its annotation) or on the cluster (status, empty timestamps). Entries of lists are matched by their
// name where they have one. The result is sorted by path.
func Differences(got, want Manifest) []Difference {
	var all []Difference
	compare("", essential(got.Object), essential(want.Object), &all)
	return all
}

// essential is a copy of a manifest without what two right manifests may differ in.
func essential(object map[string]any) map[string]any {
	object = maps.Clone(object)
	delete(object, "status")
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

func compare(path string, got, want any, all *[]Difference) {
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
		*all = append(*all, Difference{Path: readable(path), Got: brief(got), Want: brief(want)})
	}
}

func compareMaps(path string, got, want map[string]any, all *[]Difference) {
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
		return ""
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
