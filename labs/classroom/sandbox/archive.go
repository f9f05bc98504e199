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
	// filesLimit is how many files and folders an archive may have.
	filesLimit = 20_000

	headName = "head"
	filesDir = "files/"
)

// errTooMuch says that there is more in an archive than is wanted.
var errTooMuch = errors.New("more than there is room for")

// pack writes an archive: a head, and the files and folders in dir. What is neither, such as a link, is left out. dir ""
// has none.
func pack(w io.Writer, head any, dir string) error {
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
	if dir != "" {
		if err := packFiles(t, dir); err != nil {
			return fmt.Errorf("pack %s: %w", dir, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("pack: %w", err)
	}
	return nil
}

func packFiles(t *tar.Writer, dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == dir {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		header := &tar.Header{Name: filesDir + filepath.ToSlash(rel), Mode: int64(info.Mode().Perm())}
		switch {
		case entry.IsDir():
			header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
			return t.WriteHeader(header)
		case !entry.Type().IsRegular():
			return nil
		}
		return packFile(t, header, name)
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

// into reads the files into dir, as long as they have no more than so many bytes together, and the end of the archive.
// Nothing is written outside of dir, and nothing but files and folders into it. Without a dir there are to be no files.
func (p archive) into(dir string, limit int64) error {
	if dir == "" {
		if _, err := p.tar.Next(); !errors.Is(err, io.EOF) {
			return errors.Join(errors.New("unpack: there is something behind the head"), err)
		}
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("unpack: %w", err)
	}
	defer root.Close()
	return unpackFiles(p.tar, root, limit)
}

func unpackFiles(t *tar.Reader, root *os.Root, limit int64) error {
	for n := 0; ; n++ {
		header, err := t.Next()
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
		if err := unpackOne(t, header, root); err != nil {
			return fmt.Errorf("unpack %q: %w", header.Name, err)
		}
	}
}

func unpackOne(t *tar.Reader, header *tar.Header, root *os.Root) error {
	name, ok := strings.CutPrefix(path.Clean(header.Name), filesDir)
	if !ok || !filepath.IsLocal(name) {
		return errors.New("it does not belong here")
	}
	mode := fs.FileMode(header.Mode).Perm() & 0o755
	switch header.Typeflag {
	case tar.TypeDir:
		if err := root.Mkdir(name, mode|0o700); !errors.Is(err, fs.ErrExist) {
			return err
		}
		return nil
	case tar.TypeReg:
	default:
		return errors.New("it is neither file nor folder")
	}
	if err := root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err // whatever was there is not to be written through
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, t)
	return errors.Join(err, file.Close())
}

// returned is the folder of which something is wanted, "" for none.
func returned(j process.Job) string {
	if j.Returns == 0 {
		return ""
	}
	return j.Writes
}
