package probe

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/labs/harness/internal/module"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

// kinds are the types that the program needs, and so the mark of the package to look for.
var kinds = []string{"Memcached", "MemcachedList"}

func modulePath(workspace string) (string, error) {
	data, err := plain.ReadFile(filepath.Join(workspace, "go.mod"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", finding.New(CauseBuild, "a Go module", "the workspace has no go.mod")
	}
	if err != nil {
		return "", fmt.Errorf("read go.mod: %w", err)
	}
	name := modfile.ModulePath(data)
	if name == "" {
		return "", finding.New(CauseBuild, "a Go module", "go.mod names no module")
	}
	return name, nil
}

// apiPackage finds the package that declares the learner's kinds, as a slash path in the module. The
// place where Kubebuilder puts it wins over others.
func apiPackage(workspace string) (string, error) {
	const scaffolded = "api/v1alpha1"
	declared := map[string][]string{}
	err := module.Walk(workspace, func(pkg string, text []byte) error {
		declared[pkg] = append(declared[pkg], typesIn(text)...)
		return nil
	})
	if err != nil {
		return "", err
	}
	var found []string
	for at, types := range declared {
		if !slices.ContainsFunc(kinds, func(kind string) bool { return !slices.Contains(types, kind) }) {
			found = append(found, at)
		}
	}
	slices.Sort(found)
	switch {
	case len(found) == 0:
		return "", finding.New(CauseBuild, "a package with the types "+strings.Join(kinds, " and "), "none; %s is the place for it", scaffolded)
	case slices.Contains(found, scaffolded):
		return scaffolded, nil
	}
	return found[0], nil
}

// typesIn lists the types that a file declares. A file that cannot be parsed declares what was read up
// to the mistake; the compiler will say the rest.
func typesIn(text []byte) []string {
	file, _ := parser.ParseFile(token.NewFileSet(), "", text, parser.SkipObjectResolution)
	if file == nil {
		return nil
	}
	var all []string
	for _, declaration := range file.Decls {
		general, ok := declaration.(*ast.GenDecl)
		if !ok || general.Tok != token.TYPE {
			continue
		}
		for _, spec := range general.Specs {
			all = append(all, spec.(*ast.TypeSpec).Name.Name)
		}
	}
	return all
}
