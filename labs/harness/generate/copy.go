package generate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain"
)

// copyModule copies what the go command can see of the module in from. It leaves out programs in bin,
// hidden folders such as .git, and deep copies that were generated earlier: what was made from older
// types must not have a say in what is made from today's. Too much is a finding.
func copyModule(from, to string) error {
	return limits{entries: 100_000, bytes: 1 << 30}.copyModule(from, to)
}

// limits are how much is copied in all. A folder of dependencies (vendor) fits. A link of some bytes can lead to a large file,
// again and again.
type limits struct {
	entries int
	bytes   int64
}

func (l limits) copyModule(from, to string) error {
	entries, bytes := 0, int64(0)
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, rel)
		if entries++; entries > l.entries {
			return finding.New(CauseFailed, "a Go module", "the workspace has more than %d files and folders", l.entries)
		}
		switch {
		case rel == ".":
			return os.MkdirAll(target, 0o755)
		case entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") || rel == "bin"):
			return fs.SkipDir
		case entry.IsDir():
			return os.Mkdir(target, 0o755)
		case entry.Name() == deepCopyFile:
			return nil
		}
		size, err := copyFile(path, target)
		if bytes += size; bytes > l.bytes {
			return finding.New(CauseFailed, "a Go module", "the workspace has more than %d MiB", l.bytes>>20)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("copy workspace: %w", err)
	}
	return rebaseReplaces(from, to)
}

// copyFile copies the content of a file, or of the file that a symbolic link leads to. What is no code, such as a socket, a link
// to nowhere or a file that is too long, is left out.
func copyFile(from, to string) (size int64, err error) {
	info, err := os.Stat(from)
	if errors.Is(err, fs.ErrNotExist) || (err == nil && (!info.Mode().IsRegular())) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	data, err := plain.ReadFile(from)
	if err != nil {
		return 0, err
	}
	return int64(len(data)), os.WriteFile(to, data, 0o644)
}

// rebaseReplaces makes relative paths in go.mod's replace directives lead to where they led before, or to the copy of that.
func rebaseReplaces(from, to string) error {
	name := filepath.Join(to, "go.mod")
	data, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return finding.New(CauseFailed, "a Go module", "the workspace has no go.mod")
	}
	if err != nil {
		return fmt.Errorf("read go.mod: %w", err)
	}
	mod, err := modfile.Parse("go.mod", data, nil)
	if err != nil {
		return finding.New(CauseFailed, "a go.mod that the go command can read", "%v", err)
	}
	changed := false
	for _, r := range mod.Replace {
		if !modfile.IsDirectoryPath(r.New.Path) || filepath.IsAbs(r.New.Path) {
			continue
		}
		if _, err := os.Stat(filepath.Join(to, r.New.Path, "go.mod")); err == nil && filepath.IsLocal(r.New.Path) {
			continue // graded code is read where the workspace is not
		}
		changed = true
		if err := mod.AddReplace(r.Old.Path, r.Old.Version, filepath.Join(from, r.New.Path), ""); err != nil {
			return fmt.Errorf("rebase %s in go.mod: %w", r.New.Path, err)
		}
	}
	if !changed {
		return nil
	}
	if data, err = mod.Format(); err != nil {
		return fmt.Errorf("write go.mod: %w", err)
	}
	return os.WriteFile(name, data, 0o644)
}
