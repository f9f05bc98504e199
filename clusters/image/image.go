// Package image writes container images without a container engine.
package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// nobody is the user of a program image, as a number: the kubelet cannot tell whether a name is root.
const nobody = "65532:65532"

// WriteProgram writes a docker-archive tar with an image of one statically linked program for this machine's
// architecture, and nothing else: the file of the path program, as /<its name>, run by a user without rights. image is
// the image's name with a tag. It needs no container engine and no registry; Provider.LoadImageArchive of package clusters takes
// the archive.
//
// Go makes such a program with CGO_ENABLED=0.
func WriteProgram(archive, image, program string) error {
	layer, err := programLayer(program)
	if err != nil {
		return fmt.Errorf("write image %s: %w", image, err)
	}
	return Write(archive, image, v1.Config{Entrypoint: []string{"/" + filepath.Base(program)}, User: nobody}, layer)
}

// Write writes a docker-archive tar with an image of these layers for this machine's architecture. image is its name with a
// tag.
func Write(archive, image string, config v1.Config, layers ...v1.Layer) error {
	tag, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("write image %s: %w", image, err)
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return err
	}
	file, err := img.ConfigFile()
	if err != nil {
		return err
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	if img, err = mutate.ConfigFile(img, file); err != nil {
		return err
	}
	return tarball.WriteToFile(archive, tag, img)
}

// programLayer is a layer of one executable file.
func programLayer(program string) (v1.Layer, error) {
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	header := &tar.Header{Name: filepath.Base(program), Mode: 0o755, Size: int64(len(data))}
	err = w.WriteHeader(header)
	if err == nil {
		_, err = w.Write(data)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	return static.NewLayer(layer.Bytes(), types.DockerUncompressedLayer), nil
}
