package verdict

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
)

func TestARunWithoutAFolderForTemporaryFilesNamesIt(t *testing.T) {
	t.Setenv("TMPDIR", filepath.Join(t.TempDir(), "none"))
	dir, err := newScratch()
	if problem, ok := errors.AsType[*clusters.Problem](err); !ok || !strings.Contains(problem.Fix, "TMPDIR") {
		t.Errorf("%q, %v", dir, err)
	}
}

// Somebody who is still there could put a link in the place of a folder while it is removed.
func TestOnlyOurOwnLeftoversAreRemoved(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: a folder of somebody else's cannot be made")
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	ours, others := filepath.Join(tmp, "operator-lab-4000000-ours"), filepath.Join(tmp, "operator-lab-4000000-others")
	for _, dir := range []string{ours, others} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chown(others, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	sweepScratch()
	if _, err := os.Stat(ours); !os.IsNotExist(err) {
		t.Errorf("ours is left: %v", err)
	}
	if _, err := os.Stat(others); err != nil {
		t.Errorf("that of others is gone: %v", err)
	}
}
