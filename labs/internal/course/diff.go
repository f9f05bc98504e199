package course

import (
	"bytes"
	"cmp"
	"errors"
	"go/ast"
	"go/doc"
	"go/format"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"

	"github.com/example/operator-lab/labs/internal/plain"
)

// written says whether a learner writes the file, or files in the folder: neither the scaffold nor a generator makes them, and no
// pattern "never" of course.yaml matches them.
func (c *Course) written(name string, dir bool) bool {
	top, _, below := strings.Cut(name, "/")
	return slices.Contains([]string{"api", "cmd", "config", "internal"}, top) &&
		(dir || below && !slices.ContainsFunc(c.config.Generated, func(g generated) bool { return g.Path == name }) && !matchesAny(c.config.Never, name))
}

// Diff compares a workspace (-) with what a lab adds to our solution (+), without comments: Go by declarations, wherever in its package
// each stands, and other files as a whole. First it lists what differs, and what that is for. It returns "" when nothing differs. A Go
// file that cannot be parsed is a [scanner.ErrorList].
func (c *Course) Diff(workspace string, lab int) (string, error) {
	before, beforeErr := c.Render(lab - 1)
	after, afterErr := c.Render(lab)
	own, err := ReadTree(workspace, func(path string, d fs.DirEntry) bool { return !c.written(path, d.IsDir()) })
	if err := errors.Join(beforeErr, afterErr, err); err != nil {
		return "", err
	}
	old, _, beforeErr := c.parts(before)
	ours, purposes, afterErr := c.parts(after)
	yours, _, err := c.parts(own)
	if err := errors.Join(beforeErr, afterErr, err); err != nil {
		return "", err
	}
	var list, diffs strings.Builder
	for _, key := range slices.Sorted(maps.Keys(ours)) {
		if ours[key] == old[key] || ours[key] == yours[key] {
			continue
		}
		list.WriteString(plain.Fold("- ", key))
		if purposes[key] != "" {
			list.WriteString(plain.Fold("  ", purposes[key]))
		}
		diff, _ := difflib.GetUnifiedDiffString(difflib.UnifiedDiff{ // a buffer takes all
			A: slices.Collect(strings.Lines(yours[key])), B: slices.Collect(strings.Lines(ours[key])), Context: 3,
			FromFile: "yours, " + key, ToFile: "ours, " + key,
		})
		diffs.WriteString("\n" + strings.TrimRight(diff, "\n") + "\n")
	}
	return list.String() + plain.Text(diffs.String()), nil
}

// emptyLine is a line with a comment or nothing.
var emptyLine = regexp.MustCompile(`(?m)^\s*((//|#).*)?\n`)

// generatorMarker is a comment that a generator reads.
var generatorMarker = regexp.MustCompile(`// \+.*\n`)

// parts are what people write, by names such as "internal/controller: shape". purposes are the first sentences of Go comments about them.
func (c *Course) parts(tree Tree) (parts, purposes map[string]string, err error) {
	fset := token.NewFileSet()
	parts, purposes = map[string]string{}, map[string]string{}
	for _, name := range tree.Paths() {
		data := tree[name].Data
		switch {
		case !c.written(name, false):
			continue
		case path.Ext(name) != ".go":
			parts[name] = emptyLine.ReplaceAllString(string(data), "")
			continue
		}
		file, err := parser.ParseFile(fset, name, data, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		nodes, comments := declarations(file)
		for id, node := range nodes {
			key := path.Dir(name) + ": " + id
			purposes[key] = new(doc.Package).Synopsis(comments[id])
			var text bytes.Buffer
			err := format.Node(&text, fset, node)
			pretty, formatErr := format.Source(emptyLine.ReplaceAll(append(text.Bytes(), '\n'), nil))
			if err := cmp.Or(err, formatErr); err != nil {
				return nil, nil, err
			}
			parts[key] += string(pretty)
		}
		key := path.Dir(name) + ": markers"
		markers := append(strings.SplitAfter(parts[key], "\n"), generatorMarker.FindAllString(string(data), -1)...)
		slices.Sort(markers)
		parts[key] = strings.Join(markers, "")
	}
	return parts, purposes, nil
}

// declarations are those of a file, by name, and the comments above them. It takes all comments out of the file.
func declarations(file *ast.File) (nodes map[string]ast.Node, comments map[string]string) {
	nodes, comments = map[string]ast.Node{}, map[string]string{}
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			id := d.Name.Name
			if d.Recv != nil {
				id = strings.TrimPrefix(types.ExprString(d.Recv.List[0].Type), "*") + "." + id
			}
			nodes[id], comments[id] = d, d.Doc.Text()
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				one := &ast.GenDecl{Tok: d.Tok, TokPos: spec.Pos(), Specs: []ast.Spec{spec}}
				switch s := spec.(type) {
				case *ast.TypeSpec:
					nodes[s.Name.Name], comments[s.Name.Name] = one, d.Doc.Text()
				case *ast.ValueSpec:
					nodes[s.Names[0].Name] = one
				}
			}
		}
	}
	for _, group := range file.Comments {
		group.List = nil
	}
	return nodes, comments
}
