package desk

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// unzip unpacks an archive into root, and nothing outside of it.
func unzip(archive string, root *os.Root) error {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", filepath.Base(archive), err)
	}
	defer r.Close()
	for _, f := range r.File {
		if err := unzipFile(f, root); err != nil {
			return fmt.Errorf("unpack %s of %s: %w", f.Name, filepath.Base(archive), err)
		}
	}
	return nil
}

func unzipFile(f *zip.File, root *os.Root) error {
	if f.FileInfo().IsDir() {
		return root.MkdirAll(strings.TrimSuffix(f.Name, "/"), 0o755)
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer in.Close()
	return put(root, f.Name, f.Mode().Perm(), in)
}

// put writes a file below root, and makes its folders.
func put(root *os.Root, name string, mode fs.FileMode, in io.Reader) (err error) {
	if err := root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, in)
	return errors.Join(err, f.Close())
}

// untar unpacks a packed checkout into root, and nothing outside of it.
func untar(in io.Reader, root *os.Root) error {
	unpacked, err := gzip.NewReader(in)
	if err != nil {
		return err
	}
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := untarFile(h, archive, root); err != nil {
			return fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}

// untarFile unpacks what git puts into an archive; the comment at its beginning is none of it.
func untarFile(h *tar.Header, in io.Reader, root *os.Root) error {
	switch h.Typeflag {
	case tar.TypeDir:
		return root.MkdirAll(strings.TrimSuffix(h.Name, "/"), 0o755)
	case tar.TypeSymlink:
		return root.Symlink(h.Linkname, h.Name)
	case tar.TypeReg:
		return put(root, h.Name, h.FileInfo().Mode().Perm(), in)
	}
	return nil
}
