// Package module finds the Go files of a learner's module, without asking the go command, which needs
// code that it can read.
package module

import (
	"errors"
	"fmt"
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

// Walk calls visit for each Go file that is no test, of the module in dir and of the modules in dir with which its go.mod
// replaces others, such as an api module of its own. It leaves out folders that the go command does not count to a module,
// and files that it cannot read: the compiler reports those.
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
	modules := []Package{{Folder: ".", Import: mod.Module.Mod.Path}}
	for _, r := range mod.Replace {
		if modfile.IsDirectoryPath(r.New.Path) && filepath.IsLocal(r.New.Path) {
			modules = append(modules, Package{Folder: path.Clean(filepath.ToSlash(r.New.Path)), Import: r.Old.Path})
		}
	}
	for _, m := range modules {
		if err := walk(dir, m, visit); err != nil {
			return fmt.Errorf("look for Go files: %w", err)
		}
	}
	return nil
}

func walk(dir string, module Package, visit func(pkg Package, text []byte)) error {
	root := filepath.Join(dir, filepath.FromSlash(module.Folder))
	return filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil && name == root:
			return nil // the compiler reports a replacement that does not exist
		case err != nil:
			return err
		case entry.IsDir() && name != root && foreign(name, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, filepath.Dir(name))
		if err != nil {
			return err
		}
		if text, err := os.ReadFile(name); err == nil {
			visit(Package{Folder: path.Join(module.Folder, filepath.ToSlash(rel)), Import: path.Join(module.Import, filepath.ToSlash(rel))}, text)
		}
		return nil
	})
}

// foreign says whether a folder's packages belong to no module, or to another one.
func foreign(dir, base string) bool {
	if base == "vendor" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// complaintLines is how much of a complaint is shown. The first line is nearly always the cause, and the last one the remedy.
const complaintLines = 6

// Complaint shortens what the go command or controller-gen printed about a workspace to the lines that name a place in it, or to
// the first lines and the last one. Paths in it are relative to the workspace.
func Complaint(output, workspace string) string {
	output, _, _ = strings.Cut(output, "\nUsage:")
	output = strings.ReplaceAll(output, workspace+string(filepath.Separator), "")
	var places, others []string
	for line := range strings.Lines(output) {
		line = strings.TrimPrefix(strings.TrimSpace(line), "."+string(filepath.Separator))
		switch {
		case line == "" || strings.HasPrefix(line, "# "):
		case strings.Contains(line, ".go:"):
			places = append(places, line)
		default:
			others = append(others, line)
		}
	}
	if len(places) > 0 {
		slices.Sort(places) // each generator complains about the same place, in any order
		places = slices.Compact(places)
		return strings.Join(places[:min(len(places), complaintLines)], "\n")
	}
	if len(others) > complaintLines {
		others = append(others[:complaintLines-1], others[len(others)-1])
	}
	return strings.Join(others, "\n")
}
