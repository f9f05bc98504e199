// Package module finds the Go files of a learner's module, without asking the go command, which needs
// code that it can read.
package module

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
)

// Walk calls visit for every Go file of the module in dir that is no test: pkg is the slash path of the
// file's package in the module, "." for the module's own. Folders that the go command does not count to the
// module are left out, and files that cannot be read: the compiler will say that.
func Walk(dir string, visit func(pkg string, text []byte) error) error {
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != dir && foreign(name, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		pkg, err := filepath.Rel(dir, filepath.Dir(name))
		if err != nil {
			return err
		}
		text, err := plain.ReadFile(name)
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		return visit(filepath.ToSlash(pkg), text)
	})
	if err != nil {
		return fmt.Errorf("look for Go files: %w", err)
	}
	return nil
}

// foreign says whether a folder's packages are not the module's own.
func foreign(dir, base string) bool {
	if base == "vendor" || base == "testdata" || strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") {
		return true
	}
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}
