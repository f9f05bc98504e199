package watch

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// snapshot is what the relevant files of a workspace held at one moment.
type snapshot struct {
	files   map[string]file // by slash path
	folders []string        // all that were looked into, absolute
}

// file is one of them. Two files are the same when their sums are.
type file struct {
	sum      [sha256.Size]byte
	size     int64
	modified time.Time
	read     time.Time
}

// coarsest is how far apart two changes have to be for every file system to give them two times: 2 s on FAT.
const coarsest = 2 * time.Second

// certain says whether a file of this size and time is still what was read. A file that was read right after it
// was written may have been written once more within the same time.
func (f file) certain(info fs.FileInfo) bool {
	return f.size == info.Size() && f.modified.Equal(info.ModTime()) && f.read.Sub(f.modified) > coarsest
}

// take takes a snapshot. Only files whose size or time is not that of the old one are read. A workspace that cannot
// be read right now, as happens on network drives, has not changed.
func take(workspace string, old snapshot) snapshot {
	root, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		return old
	}
	now := snapshot{files: map[string]file{}}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if name == root {
			now.folders = append(now.folders, name)
			return err
		}
		rel, relErr := filepath.Rel(root, name)
		if relErr != nil {
			return relErr
		}
		return now.add(name, filepath.ToSlash(rel), entry, old)
	})
	if err != nil {
		return old
	}
	return now
}

// add takes in one entry of a folder. What vanishes meanwhile, or is nobody's to read, is not there.
func (s *snapshot) add(name, slash string, entry fs.DirEntry, old snapshot) error {
	if entry.IsDir() {
		if !followed(slash) {
			return fs.SkipDir
		}
		if !slices.Contains(s.folders, name) { // told again with the error of an unreadable one
			s.folders = append(s.folders, name)
		}
		return nil
	}
	if !relevant(slash) {
		return nil
	}
	info, err := os.Stat(name) // of what a symbolic link leads to
	if err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // an editor has just put another file in its place
	}
	f, known := old.files[slash]
	if !known || !f.certain(info) {
		if f, err = read(name, info); err != nil {
			return nil //nolint:nilerr // the same
		}
	}
	s.files[slash] = f
	return nil
}

// hashLimit is how many bytes of a file are compared.
const hashLimit = 16 << 20

func read(name string, info fs.FileInfo) (file, error) {
	f := file{size: info.Size(), modified: info.ModTime(), read: time.Now()}
	in, err := os.Open(name)
	if err != nil {
		return f, err
	}
	defer in.Close()
	hash := sha256.New()
	fmt.Fprint(hash, f.size)
	// A link can lead to a file of the kernel's, which has no size and no end.
	if _, err := io.Copy(hash, io.LimitReader(in, min(f.size, hashLimit))); err != nil {
		return f, err
	}
	hash.Sum(f.sum[:0])
	return f, nil
}

// changed are the files that differ between two snapshots, or are in only one of them, sorted.
func (s snapshot) changed(other snapshot) []string {
	var paths []string
	for p, f := range s.files {
		if g, ok := other.files[p]; !ok || f.sum != g.sum {
			paths = append(paths, p)
		}
	}
	for p := range other.files {
		if _, ok := s.files[p]; !ok {
			paths = append(paths, p)
		}
	}
	slices.Sort(paths)
	return paths
}
