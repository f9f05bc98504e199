package judge

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// tree is a file or folder of this machine that becomes one of the image.
type tree struct {
	from, to string
	// skip leaves out what it is true of; rel is relative to from, with slashes. nil leaves out nothing.
	skip func(rel string, d fs.DirEntry) bool
}

// layer is one of the image: a tar file that is not compressed, because those who load it are on the same machine.
type layer struct {
	file string
	hash v1.Hash
	size int64
}

func (l layer) Digest() (v1.Hash, error)             { return l.hash, nil }
func (l layer) DiffID() (v1.Hash, error)             { return l.hash, nil }
func (l layer) Compressed() (io.ReadCloser, error)   { return os.Open(l.file) }
func (l layer) Uncompressed() (io.ReadCloser, error) { return os.Open(l.file) }
func (l layer) Size() (int64, error)                 { return l.size, nil }
func (l layer) MediaType() (types.MediaType, error)  { return types.DockerUncompressedLayer, nil }

// writeLayer writes trees to file. Names are in order, and all files of the same time and owner: the same files make the same
// layer.
func writeLayer(file string, trees ...tree) (l layer, err error) {
	out, err := os.Create(file)
	if err != nil {
		return layer{}, err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	w := tar.NewWriter(io.MultiWriter(out, hash))
	for _, t := range trees {
		if err := t.write(w); err != nil {
			return layer{}, fmt.Errorf("pack %s: %w", t.from, err)
		}
	}
	if err := w.Close(); err != nil {
		return layer{}, err
	}
	size, err := out.Seek(0, io.SeekCurrent)
	return layer{file, v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}, size}, err
}

// write follows links: what is behind them becomes a part of the image.
func (t tree) write(w *tar.Writer) error {
	root, err := filepath.EvalSymlinks(t.from)
	if err != nil {
		return err
	}
	return filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		to := strings.TrimPrefix(path.Join(t.to, rel), "/")
		switch {
		case t.skip != nil && t.skip(rel, d) && d.IsDir():
			return fs.SkipDir
		case t.skip != nil && t.skip(rel, d):
			return nil
		case d.IsDir():
			return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: to + "/", Mode: 0o755})
		case d.Type()&fs.ModeSymlink != 0:
			return tree{name, to, func(behind string, d fs.DirEntry) bool {
				return t.skip != nil && t.skip(path.Join(rel, behind), d)
			}}.write(w)
		}
		return writeFile(w, name, to)
	})
}

func writeFile(w *tar.Writer, name, to string) error {
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o644, Size: info.Size()}
	if info.Mode()&0o100 != 0 {
		header.Mode = 0o755
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err = io.Copy(w, in)
	return err
}
