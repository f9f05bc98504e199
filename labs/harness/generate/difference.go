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

// Stale returns a finding with the cause "stale" if have differs from want, which controller-gen makes. expected is the finding's
// Expected. Of the metadata only the namespace counts: the name of a role is the learner's choice.
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

// essential is the object without what a cluster or another version of controller-gen adds.
func essential(object map[string]any) map[string]any {
	object = maps.Clone(object)
	metadata, _ := object["metadata"].(map[string]any)
	object["metadata"] = map[string]any{"namespace": metadata["namespace"]}
	delete(object, "status")
	return object
}

// Compare compares two JSON values field by field. It matches objects in lists by their name, or else their type, or
// else their place. The result is sorted by path; its values are shortened.
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

// fields are the fields of an object, or the objects in a list, by their name, type (as conditions have) or place. They are nil for
// any other value and for an empty list. A list of other values, or with two objects of one name, has none either.
func fields(value any) map[string]any {
	entries := map[string]any{}
	if object, ok := value.(map[string]any); ok {
		maps.Copy(entries, object) // a nil map is an object that does not exist
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
	text, _ := json.Marshal(value) // a value from JSON has no error
	return plain.Short(string(text), 100)
}

// CodeDifference is how a file of generated code differs from what the generator makes now.
type CodeDifference struct {
	Stale bool   // the types have changed: only one of the files has certain functions or struct fields
	Diff  string // the first lines that differ, with + before the generator's
}

// DiffCode compares two files of generated code. Comments, build tags, imports and formatting do not count. It returns nil if they
// are equal. have is the learner's file. The error says that one is not Go.
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
	// noise finds imports and blank lines.
	noise = regexp.MustCompile(`(?m)^import (?:\((?s:.*?)\n\)|.*)\n|^\s*\n`)
	// name finds what depends on the types: signatures of functions, and fields of the original (in) or the copy (out).
	name = regexp.MustCompile(`(?m)^func .*|\b(?:in|out)(\.[A-Z]\w*)`)
)

// bare is the code without comments, imports and blank lines, in the format of gofmt.
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
		all[cmp.Or(found[1], found[0])] = true // a field, or else a signature
	}
	return all
}
