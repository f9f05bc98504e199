package generate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
)

// CodeDifference is how a file of generated code differs from what the generator makes today.
type CodeDifference struct {
	// Stale says that other types explain it: one of the two has functions or struct fields that the other does not have.
	Stale bool
	// Diff has the first lines that differ, with + before what the generator writes.
	Diff string
}

// diffLines is how much of a difference is shown.
const diffLines = 8

// DiffCode compares two files of generated code. Comments, build tags, imports and formatting do not count. Without a difference
// it returns nil. have is the learner's: that it is not Go is an error.
func DiffCode(have, want string) (*CodeDifference, error) {
	have, err := normalize(have)
	if err != nil {
		return nil, err
	}
	if want, err = normalize(want); err != nil || have == want {
		return nil, err
	}
	text, err := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: difflib.SplitLines(have), B: difflib.SplitLines(want), Context: 1})
	if err != nil {
		return nil, fmt.Errorf("compare generated code: %w", err)
	}
	lines := slices.DeleteFunc(strings.Split(text, "\n"), func(line string) bool {
		return line == "" || strings.HasPrefix(line, "---") || strings.HasPrefix(line, "+++")
	})
	if len(lines) > diffLines {
		lines = append(lines[:diffLines], "…")
	}
	return &CodeDifference{Stale: !maps.Equal(names(have), names(want)), Diff: strings.Join(lines, "\n")}, nil
}

// normalize is the code without what does not count.
func normalize(source string) (string, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, deepCopyFile, source, parser.SkipObjectResolution)
	if err != nil {
		return "", fmt.Errorf("parse Go: %w", err)
	}
	var text strings.Builder
	for _, declaration := range file.Decls {
		if general, ok := declaration.(*ast.GenDecl); ok && general.Tok == token.IMPORT {
			continue
		}
		var formatted bytes.Buffer
		if err := format.Node(&formatted, set, declaration); err != nil {
			return "", fmt.Errorf("format Go: %w", err)
		}
		for line := range strings.Lines(formatted.String()) {
			if strings.TrimSpace(line) != "" {
				text.WriteString(strings.TrimSuffix(line, "\n") + "\n")
			}
		}
	}
	return text.String(), nil
}

// name is what follows from the types: a function's signature, or a field of the original or the copy.
var name = regexp.MustCompile(`(?m)^func .*|\b(in|out)\.[A-Z]\w*`)

func names(code string) map[string]bool {
	all := map[string]bool{}
	for _, found := range name.FindAllString(code, -1) {
		all[strings.TrimPrefix(strings.TrimPrefix(found, "in."), "out.")] = true
	}
	return all
}
