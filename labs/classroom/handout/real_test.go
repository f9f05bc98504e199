package handout_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// This is about the course itself: what START.md sends people to is there.
func TestStartLeadsSomewhere(t *testing.T) {
	const checkout = "../../.."
	c, err := course.Load(checkout)
	if err != nil {
		t.Fatal(err)
	}
	h := full(t)
	if h.Workspace, err = workspace.Starter(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	w := write(t, t.TempDir(), h)
	start := read(t, w.Dir, "START.md")
	for place, folder := range map[string]string{
		"labs/01-types/README.md": checkout, "labs/02-deepcopy": checkout,
		"workspace/api/v1alpha1/memcached_types.go": w.Dir,
	} {
		if !strings.Contains(start, place) {
			t.Errorf("START.md does not name %s", place)
		}
		if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(place))); err != nil {
			t.Error(err)
		}
	}
	types := read(t, w.Dir, "workspace", "api", "v1alpha1", "memcached_types.go")
	if !strings.Contains(types, "TODO(lab 1)") {
		t.Error("the workspace is not at the start of lab 1")
	}
	// Thirty people fetch theirs at once.
	if archive := read(t, w.Archive); len(archive) > 1<<20 {
		t.Errorf("the archive has %d bytes", len(archive))
	} else {
		t.Logf("the archive has %d bytes", len(archive))
	}
}
