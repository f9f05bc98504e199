package course

import (
	"bytes"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/ast/astutil"
)

// tidyGo formats a Go file and drops the imports that it does not use. It adds nothing. It supposes that a package has the name of the
// last element of its path. Any other package has to be imported by name, or the stage does not compile.
func tidyGo(name string, src []byte) ([]byte, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("not Go any more: %w", err)
	}
	for _, spec := range slices.Clone(file.Imports) {
		path, name := strings.Trim(spec.Path.Value, `"`), ""
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if !astutil.UsesImport(file, path) {
			astutil.DeleteNamedImport(fset, file, name, path)
		}
	}
	var out bytes.Buffer
	if err := format.Node(&out, fset, file); err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	return format.Source(out.Bytes()) // without the empty line that a deleted import can leave
}
