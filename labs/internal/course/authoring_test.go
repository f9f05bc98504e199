package course_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestAuthoringChecksCompile(t *testing.T) {
	for name, folder := range map[string]string{"annotate": "labs/13-annotate", "settings": "labs/cka/11-settings"} {
		dir := t.TempDir()
		coursetest.Write(t, dir, "checks.go", coursetest.Example(t, checkout(t), "// Package "+name))
		overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{
			filepath.Join(checkout(t), folder, "checks.go"): filepath.Join(dir, "checks.go"),
		}})
		if err != nil {
			t.Fatal(err)
		}
		coursetest.Write(t, dir, "overlay.json", string(overlay))
		goBuild(t, "-overlay="+filepath.Join(dir, "overlay.json"), "./"+folder)
	}
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
