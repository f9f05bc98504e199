package course

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// Tree is the content of a folder: slash path to file. Folders without files are not part of it.
type Tree map[string]File

// File is a regular file or a symbolic link.
type File struct {
	Data []byte      // the content, or the target of a symbolic link
	Mode fs.FileMode // 0o644, 0o755 for what can be executed, or fs.ModeSymlink; the umask plays no part
}

// Equal says whether two files are the same: content, executable or not, link or not.
func (f File) Equal(other File) bool { return f.Mode == other.Mode && bytes.Equal(f.Data, other.Data) }

// Paths returns the tree's paths, sorted.
func (t Tree) Paths() []string { return slices.Sorted(maps.Keys(t)) }

// Diff returns the sorted paths that differ between two trees or are in only one of them.
func (t Tree) Diff(other Tree) []string {
	differ := maps.Clone(other)
	for name, file := range t {
		if theirs, both := other[name]; both && file.Equal(theirs) {
			delete(differ, name)
		} else {
			differ[name] = file
		}
	}
	return differ.Paths()
}

// WriteTo writes the tree into dir, which is created if it is missing. Files that are there already are replaced, others stay.
// Nothing is written outside dir, whatever symbolic links it holds.
func (t Tree) WriteTo(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range t.Paths() {
		if err := root.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := t[p].Create(root, p); err != nil {
			return err
		}
	}
	return nil
}

// Create writes the file where there is none, and the folders above it. name is its slash path below root.
func (f File) Create(root *os.Root, name string) error {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if f.Mode&fs.ModeSymlink != 0 {
		return root.Symlink(string(f.Data), name)
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, f.Mode.Perm())
	if err != nil {
		return err
	}
	_, err = file.Write(f.Data)
	return errors.Join(err, file.Close())
}

// ReadTree reads all regular files and symbolic links below the folder dir, the hidden ones too, except what is called .git. It leaves
// out the files and whole folders for which skip is true; path is the slash path below dir. Sockets, pipes and devices are errors.
func ReadTree(dir string, skip ...func(path string, entry fs.DirEntry) bool) (Tree, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	defer root.Close()
	tree := Tree{}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error { // fs.WalkDir refuses names that are not UTF-8
		name, _ := filepath.Rel(dir, path)
		switch {
		case err != nil || name == ".":
			return err
		case d.Name() != ".git" && !slices.ContainsFunc(skip, func(skips func(string, fs.DirEntry) bool) bool { return skips(name, d) }):
			if !d.IsDir() {
				tree[name], err = ReadFile(root, name)
			}
			return err
		case d.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", dir, err)
	}
	return tree, nil
}

// ReadFile reads one file of a Tree. name is its slash path below root.
func ReadFile(root *os.Root, name string) (File, error) {
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return File{}, err
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := root.Readlink(name)
		return File{Data: []byte(target), Mode: fs.ModeSymlink}, err
	case !info.Mode().IsRegular():
		return File{}, fmt.Errorf("%s is neither a file nor a symbolic link", name)
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	data, err := root.ReadFile(name)
	return File{Data: data, Mode: mode}, err
}
