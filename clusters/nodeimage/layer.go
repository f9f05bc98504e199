package nodeimage

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// entry is a file of a node or an image. It belongs to root.
type entry struct {
	// name is relative to the root, with slashes.
	name string
	mode int64
	// data is what is in the file, unless it is a copy of the file host of this machine.
	data []byte
	host string
}

// program is an executable file of this machine.
func program(name, host string) entry { return entry{name: name, mode: 0o755, host: host} }

// writeTar writes the entries as a tar file.
func writeTar(out io.Writer, entries []entry) error {
	w := tar.NewWriter(out)
	for _, e := range entries {
		if err := e.write(w); err != nil {
			return fmt.Errorf("write %s: %w", e.name, err)
		}
	}
	return w.Close()
}

func (e entry) write(w *tar.Writer) error {
	header := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data))}
	var in io.Reader = bytes.NewReader(e.data)
	if e.host != "" {
		file, err := os.Open(e.host)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		header.Size, in = info.Size(), file
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(w, in)
	return err
}

// tarOf reads the entries as a tar file.
func tarOf(entries ...entry) io.ReadCloser {
	r, w := io.Pipe()
	go func() { w.CloseWithError(writeTar(w, entries)) }()
	return r
}

// layer makes an image layer of a tar file. It is compressed, because images stay packed in most nodes.
func layer(open tarball.Opener) (v1.Layer, error) {
	return tarball.LayerFromOpener(open, tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
}

// partLayer is a layer of the tar file that [engine.writePart] wrote.
func partLayer(file string) (v1.Layer, error) {
	return layer(func() (io.ReadCloser, error) { return os.Open(file) })
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
