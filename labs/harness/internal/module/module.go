// Package module finds the Go files of a learner's module. It does not use the go command, which fails on code
// with syntax errors.
package module

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// Package is a folder with Go code.
type Package struct {
	// Folder is its slash path in the workspace, "." for the workspace itself.
	Folder string
	// Import is its import path.
	Import string
}

// Walk calls visit for each Go file of the module in dir that is no test. It does the same for modules below dir that a replace
// directive of its go.mod names, such as a module for the API. It leaves out folders that do not belong to the module for the
// go command, and files that it cannot read: the compiler reports those.
func Walk(dir string, visit func(pkg Package, text []byte)) error {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return errors.New("the workspace has no go.mod that can be read")
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	switch {
	case err != nil:
		return err
	case mod.Module == nil:
		return errors.New("go.mod names no module")
	}
	walk(dir, Package{Folder: ".", Import: mod.Module.Mod.Path}, visit)
	for _, r := range mod.Replace {
		if modfile.IsDirectoryPath(r.New.Path) && filepath.IsLocal(r.New.Path) {
			walk(dir, Package{Folder: path.Clean(filepath.ToSlash(r.New.Path)), Import: r.Old.Path}, visit)
		}
	}
	return nil
}

func walk(dir string, module Package, visit func(pkg Package, text []byte)) {
	root := os.DirFS(filepath.Join(dir, module.Folder))
	_ = fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil || entry.IsDir() && name != "." && foreign(root, name):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		if text, err := fs.ReadFile(root, name); err == nil {
			visit(Package{Folder: path.Join(module.Folder, path.Dir(name)), Import: path.Join(module.Import, path.Dir(name))}, text)
		}
		return nil
	})
}

// foreign says whether a folder does not belong to the module.
func foreign(root fs.FS, folder string) bool {
	base := path.Base(folder)
	_, err := fs.Stat(root, path.Join(folder, "go.mod"))
	return err == nil || base == "vendor" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
}

// Complaint shortens the output of the go command or controller-gen to the lines that name a place in a Go file. If there are none, it
// keeps the first lines, which nearly always have the cause, and the last one, which names the remedy. Paths become relative to the
// workspace.
func Complaint(output, workspace string) string {
	const shown = 6
	output, _, _ = strings.Cut(output, "\nUsage:")
	output = strings.ReplaceAll(output, workspace+string(filepath.Separator), "")
	var lines []string
	for line := range strings.Lines(output) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "."+string(filepath.Separator))
		if line != "" && !strings.HasPrefix(line, "# ") {
			lines = append(lines, line)
		}
	}
	places := slices.DeleteFunc(slices.Clone(lines), func(line string) bool { return !strings.Contains(line, ".go:") })
	if len(places) > 0 {
		slices.Sort(places) // each generator complains about the same place, in any order
		lines = slices.Compact(places)
	}
	if len(lines) > shown {
		lines = append(lines[:shown-1], lines[len(lines)-1])
	}
	return strings.Join(lines, "\n")
}
