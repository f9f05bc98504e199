package nodeimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is one file of a layer. Everything belongs to root.
type entry struct {
	// name is relative to the image's root, with slashes.
	name string
	mode int64
	// link makes it a symbolic link.
	link string
	// size and open give the contents of a file. Without open it is a folder, unless it is a link.
	size int64
	open func() (io.ReadCloser, error)
}

// text is a file with the given contents.
func text(name string, mode int64, data []byte) entry {
	return entry{name: name, mode: mode, size: int64(len(data)),
		open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
}

// program is an executable file of the host.
func program(name, file string) (entry, error) {
	info, err := os.Stat(file)
	if err != nil {
		return entry{}, err
	}
	return entry{name: name, mode: 0o755, size: info.Size(),
		open: func() (io.ReadCloser, error) { return os.Open(file) }}, nil
}

// symlink is a symbolic link.
func symlink(name, target string) entry { return entry{name: name, mode: 0o777, link: target} }

// folder is an empty folder.
func folder(name string, mode int64) entry { return entry{name: name, mode: mode} }

// writeTar writes the entries, and the folders they are in, in a fixed order and without times: the same entries are
// always the same bytes.
func writeTar(out io.Writer, entries []entry) error {
	w := tar.NewWriter(out)
	for _, e := range withFolders(entries) {
		if err := writeEntry(w, e); err != nil {
			return fmt.Errorf("write %s: %w", e.name, err)
		}
	}
	return w.Close()
}

func writeEntry(w *tar.Writer, e entry) error {
	header := &tar.Header{Name: e.name, Mode: e.mode, Size: e.size, Typeflag: tar.TypeReg}
	switch {
	case e.link != "":
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.link
	case e.open == nil:
		header.Typeflag, header.Name = tar.TypeDir, e.name+"/"
	}
	if err := w.WriteHeader(header); err != nil || e.open == nil {
		return err
	}
	in, err := e.open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	_, err = io.Copy(w, in)
	return err
}

// withFolders adds the missing parents and sorts, so that each folder comes before what is in it.
func withFolders(entries []entry) []entry {
	byName := map[string]entry{}
	for _, e := range entries {
		byName[e.name] = e
	}
	for _, e := range entries {
		for dir := path.Dir(e.name); dir != "."; dir = path.Dir(dir) {
			if _, ok := byName[dir]; !ok {
				byName[dir] = folder(dir, 0o755)
			}
		}
	}
	sorted := make([]entry, 0, len(byName))
	for _, e := range byName {
		sorted = append(sorted, e)
	}
	slices.SortFunc(sorted, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	return sorted
}

// layer is an uncompressed image layer that is made anew each time it is read. Compressing would only cost time: the
// node image never travels.
type layer struct {
	write func(io.Writer) error
	hash  v1.Hash
	size  int64
}

// newLayer reads the layer once to learn its digest.
func newLayer(write func(io.Writer) error) (*layer, error) {
	hash := sha256.New()
	count := &counter{}
	if err := write(io.MultiWriter(hash, count)); err != nil {
		return nil, err
	}
	digest := v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(hash.Sum(nil))}
	return &layer{write: write, hash: digest, size: count.n}, nil
}

// entryLayer is a layer of files.
func entryLayer(entries []entry) (*layer, error) {
	return newLayer(func(w io.Writer) error { return writeTar(w, entries) })
}

// packedLayer is a compressed layer of files, for images that stay packed in most nodes.
func packedLayer(entries []entry) (v1.Layer, error) {
	plain := &layer{write: func(w io.Writer) error { return writeTar(w, entries) }}
	return tarball.LayerFromOpener(plain.Uncompressed,
		tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
}

// fileLayer is a layer that is a tar file of the host already.
func fileLayer(name string) (*layer, error) {
	return newLayer(func(w io.Writer) error {
		in, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = in.Close() }()
		_, err = io.Copy(w, in)
		return err
	})
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

var _ v1.Layer = (*layer)(nil)

func (l *layer) Digest() (v1.Hash, error)            { return l.hash, nil }
func (l *layer) DiffID() (v1.Hash, error)            { return l.hash, nil }
func (l *layer) Size() (int64, error)                { return l.size, nil }
func (l *layer) MediaType() (types.MediaType, error) { return types.DockerUncompressedLayer, nil }
func (l *layer) Compressed() (io.ReadCloser, error)  { return l.Uncompressed() }
func (l *layer) Uncompressed() (io.ReadCloser, error) {
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(l.write(writer)) }()
	return reader, nil
}

// assemble makes an image of layers and a configuration.
func assemble(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("assemble image: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("assemble image: %w", err)
	}
	file = file.DeepCopy()
	file.Architecture, file.OS, file.Config = arch, "linux", config
	return mutate.ConfigFile(image, file)
}

// replaceFile writes a file through a temporary one, so that nobody ever sees half of it.
func replaceFile(name string, write func(tmp string) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(name), "writing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tmp := filepath.Join(dir, filepath.Base(name))
	if err := write(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}
