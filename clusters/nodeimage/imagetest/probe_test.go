package imagetest

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// probeImage holds the program netprobe and nothing else.
const probeImage = "operator-lab.local/netprobe:test"

// probeArchive builds the image of the probe.
func probeArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "netprobe"), "./netprobe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build netprobe: %v\n%s", err, out)
	}
	program, err := os.ReadFile(filepath.Join(dir, "netprobe"))
	if err != nil {
		t.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return tarOf("netprobe", program) })
	if err != nil {
		t.Fatal(err)
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		t.Fatal(err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, v1.Config{User: "65532"}
	if image, err = mutate.ConfigFile(image, file); err != nil {
		t.Fatal(err)
	}
	archive := filepath.Join(dir, "netprobe.tar")
	if err := tarball.WriteToFile(archive, name.MustParseReference(probeImage), image); err != nil {
		t.Fatal(err)
	}
	return archive
}

func tarOf(program string, data []byte) (io.ReadCloser, error) {
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	header := &tar.Header{Name: program, Mode: 0o755, Size: int64(len(data)), Typeflag: tar.TypeReg}
	if err := w.WriteHeader(header); err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	return io.NopCloser(&buffer), w.Close()
}
