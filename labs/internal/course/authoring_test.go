package course_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestAuthoringManifestLoads(t *testing.T) {
	root, c := t.TempDir(), coursetest.Load(t, checkout(t))
	manifest := coursetest.Example(t, c.Root, "schema: 1\n")
	var number int
	var name string
	if _, err := fmt.Sscanf(manifest, "schema: 1\nlab: %d\nname: %s\n", &number, &name); err != nil {
		t.Fatal(err)
	}
	for _, lab := range c.Labs[:number-1] {
		coursetest.Write(t, root, lab.Dir+"/lab.yaml", coursetest.Read(t, c.Root, lab.Dir+"/lab.yaml"))
	}
	coursetest.Write(t, root, "labs/course.yaml", "schema: 1\n")
	coursetest.Write(t, root, fmt.Sprintf("labs/%d-%s/lab.yaml", number, name), manifest)
	if _, err := course.Load(root); err != nil {
		t.Error(err)
	}
}

func TestAuthoringCheckCompiles(t *testing.T) {
	dir := t.TempDir()
	coursetest.Write(t, dir, "checks.go", coursetest.Example(t, checkout(t), "// Package annotate"))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
		filepath.Join(checkout(t), "labs/11-annotate/checks.go"): filepath.Join(dir, "checks.go"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	coursetest.Write(t, dir, "overlay.json", string(overlay))
	goBuild(t, "-overlay="+filepath.Join(dir, "overlay.json"), "./labs/11-annotate")
}

// goBuild runs go build in this checkout.
func goBuild(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"build"}, args...)...)
	cmd.Dir, cmd.Env = checkout(t), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}
