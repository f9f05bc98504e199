package generate

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

// Stale is a finding with the cause "stale" about a manifest that differs from what controller-gen makes, or nil. Of the metadata
// only the namespace counts: a role has the name that the learner chose.
func Stale(have, want Manifest, expected string) error {
	differences := Compare(essential(have.Object), essential(want.Object))
	if len(differences) == 0 {
		return nil
	}
	var lines []string
	for _, d := range differences[:min(len(differences), 5)] {
		lines = append(lines, fmt.Sprintf("%s is %s, controller-gen makes it %s", d.Path, d.Have, d.Want))
	}
	return finding.New("stale", expected, "%s", strings.Join(lines, "\n")).With(differences...)
}

// essential is the object without what a cluster or another version of controller-gen writes.
func essential(object map[string]any) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = map[string]any{"namespace": metadata["namespace"]}
	delete(object, "status")
	return object
}

// Compare compares two values as JSON has them, field by field. Entries of lists are matched by their
// name where they have one. The result is sorted by path; its texts are short.
func Compare(got, want any) []finding.Field { return compare("", got, want) }

func compare(path string, got, want any) (all []finding.Field) {
	gotFields, wantFields := fields(got), fields(want)
	if gotFields == nil || wantFields == nil {
		if !reflect.DeepEqual(got, want) {
			all = append(all, finding.Field{Path: readable(path), Want: brief(want), Have: brief(got)})
		}
		return all
	}
	keys := maps.Clone(gotFields)
	maps.Copy(keys, wantFields)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		at := strings.TrimPrefix(strings.ReplaceAll(path+"."+key, ".[", "["), ".")
		all = append(all, compare(at, gotFields[key], wantFields[key])...)
	}
	return all
}

// fields are those of an object, or the objects of a list by their names, by their types as conditions have them, or by their
// places. A list that has two of one name, or anything but objects, has none.
func fields(value any) map[string]any {
	entries := map[string]any{}
	if object, ok := value.(map[string]any); ok {
		maps.Copy(entries, object) // which is nil when the object is gone
		return entries
	}
	list, _ := value.([]any)
	for i, entry := range list {
		if object, ok := entry.(map[string]any); ok {
			entries[fmt.Sprintf("[%v]", cmp.Or(object["name"], object["type"], any(i)))] = entry
		}
	}
	if len(list) == 0 || len(entries) < len(list) {
		return nil
	}
	return entries
}

// readable turns a path through a schema into the field that the schema describes, such as "spec.size.maximum".
func readable(path string) string {
	if _, schema, found := strings.Cut(path, ".schema.openAPIV3Schema."); found {
		return "schema: " + strings.ReplaceAll(strings.TrimPrefix(schema, "properties."), ".properties.", ".")
	}
	return path
}

func brief(value any) string {
	if value == nil {
		return "absent"
	}
	text, _ := json.Marshal(value) // which is JSON's own
	return plain.Short(string(text), 100)
}

// CodeDifference is how a file of generated code differs from what the generator makes today.
type CodeDifference struct {
	Stale bool   // other types explain it: one of the two has functions or struct fields that the other does not have
	Diff  string // the first lines that differ, with + before what the generator writes
}

// DiffCode compares two files of generated code. Comments, build tags, imports and formatting do not count. Without a difference
// it returns nil. have is the learner's: that it is not Go is an error.
func DiffCode(have, want string) (*CodeDifference, error) {
	have, err := bare(have)
	if err != nil {
		return nil, err
	}
	if want, err = bare(want); err != nil || have == want {
		return nil, err
	}
	diff, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(have), B: difflib.SplitLines(want), Context: 1})
	lines := strings.Split(diff, "\n")
	return &CodeDifference{Stale: !maps.Equal(names(have), names(want)), Diff: strings.Join(lines[:min(len(lines), 8)], "\n")}, err
}

var (
	// noise is the imports, and blank lines.
	noise = regexp.MustCompile(`(?m)^import (?:\((?s:.*?)\n\)|.*)\n|^\s*\n`)
	// name is what follows from the types: a function's signature, or a field of the original or the copy.
	name = regexp.MustCompile(`(?m)^func .*|\b(?:in|out)(\.[A-Z]\w*)`)
)

// bare is the code without what does not count.
func bare(source string) (string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, deepCopyFile, source, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("parse Go: %w", err)
	}
	var text bytes.Buffer
	err = format.Node(&text, set, file)
	return noise.ReplaceAllString(text.String(), ""), err
}

func names(code string) map[string]bool {
	all := map[string]bool{}
	for _, found := range name.FindAllStringSubmatch(code, -1) {
		all[cmp.Or(found[1], found[0])] = true // the field of either
	}
	return all
}
