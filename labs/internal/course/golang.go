package course

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"
)

// tidyGo formats a Go file and drops the imports that it does not use. It adds
// nothing.
func tidyGo(name string, src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("not Go any more: %w", err)
	}
	dropUnusedImports(fset, file)
	var out bytes.Buffer
	if err := format.Node(&out, fset, file); err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	// Once more: deleting an import can leave an empty line where gofmt of the
	// text wants none.
	return format.Source(out.Bytes())
}

func dropUnusedImports(fset *token.FileSet, file *ast.File) {
	used := packagesUsed(file)
	for _, spec := range slices.Clone(file.Imports) {
		importPath, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			continue
		}
		names, explicit := assumedNames(importPath), ""
		if spec.Name != nil {
			names, explicit = []string{spec.Name.Name}, spec.Name.Name
		}
		if explicit == "_" || explicit == "." || slices.ContainsFunc(names, func(n string) bool { return used[n] }) {
			continue
		}
		astutil.DeleteNamedImport(fset, file, explicit, importPath)
	}
}

// packagesUsed returns every name that stands before a dot. A variable of the
// same name only keeps an import that could go, which the compiler tells.
func packagesUsed(file *ast.File) map[string]bool {
	used := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if id, ok := sel.X.(*ast.Ident); ok {
				used[id.Name] = true
			}
		}
		return true
	})
	return used
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// assumedNames are the names that a package imported without one may have: the
// last element of its path and, where that is a version, the one before it
// (k8s.io/api/apps/v1 is v1, but example.com/tool/v2 is tool). Where none is
// right, the operator names its import, or the stage does not compile.
func assumedNames(importPath string) []string {
	base := path.Base(importPath)
	names := []string{base}
	if majorVersion.MatchString(base) {
		names = append(names, path.Base(path.Dir(importPath)))
	}
	return names
}
