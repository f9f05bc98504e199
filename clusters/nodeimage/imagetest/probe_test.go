package imagetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/clusters/image"
)

// probeImage holds the program netprobe and nothing else.
const probeImage = "operator-lab.local/netprobe:test"

// probeArchive builds the image of the probe.
func probeArchive(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "netprobe"), filepath.Join(dir, "netprobe.tar")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./netprobe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build netprobe: %v\n%s", err, out)
	}
	if err := image.WriteProgram(archive, probeImage, program); err != nil {
		t.Fatal(err)
	}
	return archive
}
