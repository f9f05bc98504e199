package generate

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// CodeDifference is one function that differs between two files of generated code.
type CodeDifference struct {
	// Function is what differs, such as "(*MemcachedStatus).DeepCopyInto".
	Function string
	// Kind is how it differs.
	Kind CodeDifferenceKind
	// Lacks and Leftovers are the struct fields that only the generator's code mentions, and those that
	// only this code does. They explain a stale file best.
	Lacks, Leftovers []string
	// Got and Want are the first lines that differ, without indentation.
	Got, Want string
}

// CodeDifferenceKind is how a function differs from the generated one.
type CodeDifferenceKind int

const (
	// Missing means that the function is not there.
	Missing CodeDifferenceKind = iota
	// Extra means that the generator makes no such function.
	Extra
	// Changed means that the function does something else.
	Changed
)

// String tells the difference in one sentence.
func (d CodeDifference) String() string {
	switch {
	case d.Kind == Missing:
		return d.Function + " is missing"
	case d.Kind == Extra:
		return d.Function + " belongs to no type that is copied today"
	case len(d.Lacks) > 0:
		return fmt.Sprintf("%s knows nothing of %s", d.Function, strings.Join(d.Lacks, ", "))
	case len(d.Leftovers) > 0:
		return fmt.Sprintf("%s still copies %s", d.Function, strings.Join(d.Leftovers, ", "))
	}
	return fmt.Sprintf("%s has %s where the generator writes %s", d.Function, quote(d.Got), quote(d.Want))
}

func quote(line string) string {
	if line == "" {
		return "nothing"
	}
	return "`" + line + "`"
}

// CodeDifferences compares two files of generated code function by function; comments, build tags,
// imports and the way of formatting do not count. got is the learner's: that it is not Go is an error.
func CodeDifferences(got, want string) ([]CodeDifference, error) {
	have, err := functions(got)
	if err != nil {
		return nil, err
	}
	need, err := functions(want)
	if err != nil {
		return nil, err
	}
	var all []CodeDifference
	for _, name := range slices.Sorted(maps.Keys(need)) {
		switch {
		case have[name] == nil:
			all = append(all, CodeDifference{Function: name, Kind: Missing})
		case !slices.Equal(have[name].lines, need[name].lines):
			all = append(all, changed(name, have[name], need[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if need[name] == nil {
			all = append(all, CodeDifference{Function: name, Kind: Extra})
		}
	}
	return all, nil
}

func changed(name string, have, need *function) CodeDifference {
	d := CodeDifference{
		Function: name, Kind: Changed,
		Lacks: without(need.fields, have.fields), Leftovers: without(have.fields, need.fields),
	}
	d.Got, d.Want = firstDifference(have.lines, need.lines)
	return d
}

func firstDifference(got, want []string) (string, string) {
	i := 0
	for i < len(got) && i < len(want) && got[i] == want[i] {
		i++
	}
	line := func(lines []string) string {
		if i < len(lines) {
			return lines[i]
		}
		return ""
	}
	return line(got), line(want)
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// function is what one function does: its lines, and the fields it names.
type function struct{ lines, fields []string }

// functions reads the functions of a file by name. Other declarations appear as a function called after
// their keyword, so that nothing in a file goes unnoticed; imports follow from the rest.
func functions(source string) (map[string]*function, error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, deepCopyFile, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parse Go: %w", err)
	}
	all := map[string]*function{}
	for _, declaration := range file.Decls {
		name := "a declaration"
		switch d := declaration.(type) {
		case *ast.GenDecl:
			if d.Tok == token.IMPORT {
				continue
			}
			name = d.Tok.String()
		case *ast.FuncDecl:
			name = functionName(d)
		}
		var text bytes.Buffer
		if err := format.Node(&text, set, declaration); err != nil {
			return nil, fmt.Errorf("read generated code: %w", err)
		}
		all[name] = &function{lines: lines(text.String()), fields: fields(declaration)}
	}
	return all, nil
}

func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	switch receiver := f.Recv.List[0].Type.(type) {
	case *ast.StarExpr:
		return fmt.Sprintf("(*%s).%s", name(receiver.X), f.Name.Name)
	default:
		return name(receiver) + "." + f.Name.Name
	}
}

func name(e ast.Expr) string {
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}

func lines(text string) []string {
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// fields lists the fields of in and out that the code names: with those two, every generated function
// reads its original and writes its copy.
func fields(node ast.Node) []string {
	seen := map[string]bool{}
	ast.Inspect(node, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && ast.IsExported(s.Sel.Name) && (name(s.X) == "in" || name(s.X) == "out") {
			seen[s.Sel.Name] = true
		}
		return true
	})
	delete(seen, "DeepCopyInto")
	delete(seen, "DeepCopy")
	return slices.Sorted(maps.Keys(seen))
}
