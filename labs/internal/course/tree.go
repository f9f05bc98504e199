package course

import (
	"bytes"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Tree is the content of a folder: slash path to file. Folders without files
// are not part of it.
type Tree map[string]File

// File is a regular file or a symbolic link.
type File struct {
	// Data is the file's content, or the target of a symbolic link.
	Data []byte
	// Mode is 0o644, 0o755 or fs.ModeSymlink; see NormalMode.
	Mode fs.FileMode
}

// NormalMode reduces a mode to what a Tree keeps: executable or not, or a
// symbolic link. So no tree depends on anybody's umask.
func NormalMode(mode fs.FileMode) fs.FileMode {
	switch {
	case mode&fs.ModeSymlink != 0:
		return fs.ModeSymlink
	case mode&0o111 != 0:
		return 0o755
	default:
		return 0o644
	}
}

// Equal says whether two files are the same: content, executable or not,
// link or not.
func (f File) Equal(other File) bool {
	return f.Mode == other.Mode && bytes.Equal(f.Data, other.Data)
}

// Paths returns the tree's paths, sorted.
func (t Tree) Paths() []string { return slices.Sorted(maps.Keys(t)) }

// Diff returns the sorted paths that differ between two trees or are in only
// one of them.
func (t Tree) Diff(other Tree) []string {
	var paths []string
	for p, f := range t {
		if g, ok := other[p]; !ok || !f.Equal(g) {
			paths = append(paths, p)
		}
	}
	for p := range other {
		if _, ok := t[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}

// WriteTo writes the tree into dir, which is created if it is missing. Files
// that are there already are replaced, others stay. Nothing is written outside
// dir, whatever symbolic links it holds.
func (t Tree) WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("write tree: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("write tree: %w", err)
	}
	defer root.Close()
	for _, p := range t.Paths() {
		if err := t[p].write(root, p); err != nil {
			return fmt.Errorf("write tree: %w", err)
		}
	}
	return nil
}

func (f File) write(root *os.Root, slash string) error {
	name := filepath.FromSlash(slash)
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	if err := root.Remove(name); err != nil && !os.IsNotExist(err) {
		return err
	}
	if f.Mode&fs.ModeSymlink != 0 {
		return root.Symlink(string(f.Data), name)
	}
	return root.WriteFile(name, f.Data, f.Mode.Perm())
}

// ReadTree reads the folder dir: all regular files and symbolic links, the
// hidden ones too, except what is called .git. Anything else (sockets, pipes,
// devices) is an error.
func ReadTree(dir string) (Tree, error) {
	return ReadTreeExcept(dir, func(string, fs.DirEntry) bool { return false })
}

// ReadTreeExcept is ReadTree without the files and whole folders that skip
// names by their slash path below dir.
func ReadTreeExcept(dir string, skip func(path string, entry fs.DirEntry) bool) (Tree, error) {
	tree := Tree{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		slash := filepath.ToSlash(rel)
		if d.Name() == ".git" || skip(slash, d) {
			return leaveOut(d)
		}
		if d.IsDir() {
			return nil
		}
		tree[slash], err = ReadFile(name, d.Type())
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	return tree, nil
}

func leaveOut(d fs.DirEntry) error {
	if d.IsDir() {
		return filepath.SkipDir
	}
	return nil
}

// ReadFile reads one entry of a Tree whose type (fs.DirEntry.Type) is known.
func ReadFile(name string, kind fs.FileMode) (File, error) {
	if kind&fs.ModeSymlink != 0 {
		target, err := os.Readlink(name)
		return File{Data: []byte(target), Mode: fs.ModeSymlink}, err
	}
	if !kind.IsRegular() {
		return File{}, fmt.Errorf("%s is neither a file nor a symbolic link", name)
	}
	info, err := os.Lstat(name)
	if err != nil {
		return File{}, err
	}
	data, err := os.ReadFile(name)
	return File{Data: data, Mode: NormalMode(info.Mode())}, err
}
