package sandbox

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// headLimit is the size of the text that an archive begins with.
	headLimit = 1 << 20
	// filesLimit is how many files and folders an archive may have: those of the largest workspace that is graded, and as many again
	// of ours.
	filesLimit = 40_000

	headName = "head"
	// filesName is the folder of an archive for what is in [process.Job.Writes], and readsName for what a job only reads.
	filesName = "files"
	readsName = "reads"
)

// tree is a file or folder, and its name in an archive. With links these belong to it; without, they are left out, and refused.
type tree struct {
	name, path string
	links      bool
}

// written is the folder that a program may write to, none for "".
func written(dir string) []tree {
	if dir == "" {
		return nil
	}
	return []tree{{name: filesName, path: dir}}
}

// errTooMuch says that there is more in an archive than is wanted.
var errTooMuch = errors.New("more than there is room for")

// pack writes an archive: a head, and the files and folders of trees. What is neither, such as a socket, is left out.
func pack(w io.Writer, head any, trees ...tree) error {
	text, err := json.Marshal(head)
	if err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	t := tar.NewWriter(w)
	if err := t.WriteHeader(&tar.Header{Name: headName, Mode: 0o600, Size: int64(len(text))}); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	if _, err := t.Write(text); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	for _, tree := range trees {
		if err := tree.pack(t); err != nil {
			return fmt.Errorf("pack %s: %w", tree.path, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

func (t tree) pack(w *tar.Writer) error {
	return filepath.WalkDir(t.path, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(t.path, name)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: path.Join(t.name, filepath.ToSlash(rel)), Mode: int64(info.Mode().Perm())}
		switch {
		case entry.IsDir() && header.Name == filesName:
			return nil // it is there
		case entry.IsDir():
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
			return w.WriteHeader(header)
		case entry.Type()&fs.ModeSymlink != 0 && t.links:
			header.Typeflag = tar.TypeSymlink
			if header.Linkname, err = os.Readlink(name); err != nil {
				return err
			}
			return w.WriteHeader(header)
		case !entry.Type().IsRegular():
			return nil
		}
		return packFile(w, header, name)
	})
}

func packFile(t *tar.Writer, header *tar.Header, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	header.Size = info.Size()
	if err := t.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(t, file)
	return err
}

// archive is one that somebody else packed, and whom nobody trusts.
type archive struct{ tar *tar.Reader }

// unpack begins to read an archive, with its head.
func unpack(r io.Reader, head any) (archive, error) {
	p := archive{tar.NewReader(r)}
	header, err := p.tar.Next()
	if err != nil {
		return p, fmt.Errorf("unpack: %w", err)
	}
	if header.Name != headName || header.Size > headLimit {
		return p, errors.New("unpack: it does not begin with a head")
	}
	text, err := io.ReadAll(p.tar)
	if err == nil {
		err = json.Unmarshal(text, head)
	}
	if err != nil {
		return p, fmt.Errorf("unpack: %w", err)
	}
	return p, nil
}

// into reads the files into the trees that they belong to, as long as they have no more than so many bytes together, and the end of
// the archive. Nothing is written outside of the trees, and nothing but files and folders into them, and links where they may have
// some. Without a tree there are to be no files.
func (p archive) into(limit int64, trees ...tree) error {
	roots := map[string]*os.Root{}
	links := map[string]bool{}
	for _, t := range trees {
		root, err := os.OpenRoot(t.path)
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		defer root.Close()
		roots[t.name], links[t.name] = root, t.links
	}
	for n := 0; ; n++ {
		header, err := p.tar.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack: %w", err)
		}
		limit -= header.Size
		if limit < 0 || n > filesLimit {
			return fmt.Errorf("unpack: %w", errTooMuch)
		}
		top, name, _ := strings.Cut(path.Clean(header.Name), "/")
		if roots[top] == nil || !filepath.IsLocal(name) {
			return fmt.Errorf("unpack %q: it does not belong here", header.Name)
		}
		header.Name = name
		if err := unpackOne(p.tar, header, roots[top], links[top]); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

func unpackOne(t *tar.Reader, header *tar.Header, root *os.Root, links bool) error {
	mode := fs.FileMode(header.Mode).Perm() & 0o755
	if header.Typeflag == tar.TypeDir {
		if err := root.Mkdir(header.Name, mode|0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	}
	if header.Typeflag != tar.TypeReg && (header.Typeflag != tar.TypeSymlink || !links) {
		return errors.New("it is neither file nor folder")
	}
	if err := root.Remove(header.Name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // whatever was there is not to be written through
	}
	if header.Typeflag == tar.TypeSymlink {
		return root.Symlink(header.Linkname, header.Name)
	}
	file, err := root.OpenFile(header.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, t)
	return errors.Join(err, file.Close())
}

// returned is the folder of which something is wanted, if there is one.
func returned(j process.Job) []tree {
	if j.Returns == 0 {
		return nil
	}
	return written(j.Writes)
}
