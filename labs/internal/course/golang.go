package course

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strconv"

	"golang.org/x/tools/go/ast/astutil"
)

// tidyGo formats a Go file and drops the imports that it does not use. It adds
// nothing.
func tidyGo(name string, src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments)
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

// dropUnusedImports takes a package's name for the last element of its path: any other package has to be imported by name,
// or the stage does not compile.
func dropUnusedImports(fset *token.FileSet, file *ast.File) {
	for _, spec := range slices.Clone(file.Imports) {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil || astutil.UsesImport(file, path) {
			continue
		}
		name := ""
		if spec.Name != nil {
			name = spec.Name.Name
		}
		astutil.DeleteNamedImport(fset, file, name, path)
	}
}
