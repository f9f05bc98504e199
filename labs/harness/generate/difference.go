package generate

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/example/operator-lab/labs/internal/finding"
)

// Compare compares two values as JSON has them, field by field. Entries of lists are matched by their
// name where they have one. The result is sorted by path; its texts are short.
func Compare(got, want any) []finding.Field {
	var all []finding.Field
	compare("", got, want, &all)
	return all
}

// Differences compares two manifests by [Compare], without what depends on the version of the generator (its annotation) or on
// the cluster (status, empty timestamps).
func Differences(got, want Manifest) []finding.Field {
	return Compare(essential(got.Object), essential(want.Object))
}

// Stale is a finding with the cause "stale" about a manifest that differs from what controller-gen makes, nil without [Differences].
func Stale(have, want Manifest, expected string) error {
	const shown = 5
	differences := Differences(have, want)
	if len(differences) == 0 {
		return nil
	}
	var lines []string
	for _, d := range differences[:min(len(differences), shown)] {
		lines = append(lines, fmt.Sprintf("%s is %s, controller-gen makes it %s", d.Path, d.Have, d.Want))
	}
	if more := len(differences) - shown; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return finding.New("stale", expected, "%s", strings.Join(lines, "\n")).With(differences...)
}

func essential(object map[string]any) map[string]any {
	object = runtime.DeepCopyJSON(object)
	delete(object, "status")
	if spec, _ := object["spec"].(map[string]any); spec["preserveUnknownFields"] == false {
		delete(spec, "preserveUnknownFields") // the default, in old tutorials
	}
	metadata, _ := object["metadata"].(map[string]any)
	if metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	unstructured.RemoveNestedField(metadata, "annotations", "controller-gen.kubebuilder.io/version")
	if annotations, ok := metadata["annotations"].(map[string]any); ok && len(annotations) == 0 {
		delete(metadata, "annotations")
	}
	return object
}

func compare(path string, got, want any, all *[]finding.Field) {
	gotMap, haveMap := fields(got)
	wantMap, needMap := fields(want)
	if !haveMap || !needMap {
		if !reflect.DeepEqual(got, want) {
			*all = append(*all, finding.Field{Path: readable(path), Want: brief(want), Have: brief(got)})
		}
		return
	}
	keys := map[string]any{}
	maps.Copy(keys, gotMap)
	maps.Copy(keys, wantMap)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := key
		if path != "" && !strings.HasPrefix(key, "[") {
			at = "." + key
		}
		compare(path+at, gotMap[key], wantMap[key], all)
	}
}

// fields are those of an object, or the objects of a list by their names, by their types as conditions have them, or by their
// places, if each has its own.
func fields(value any) (map[string]any, bool) {
	if object, ok := value.(map[string]any); ok {
		return object, true
	}
	list, _ := value.([]any)
	entries := map[string]any{}
	for i, entry := range list {
		object, ok := entry.(map[string]any)
		name, _ := object["name"].(string)
		if name == "" {
			name, _ = object["type"].(string)
		}
		if ok && name == "" {
			name = fmt.Sprint(i)
		}
		if ok {
			entries["["+name+"]"] = entry
		}
	}
	return entries, len(list) > 0 && len(entries) == len(list)
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
