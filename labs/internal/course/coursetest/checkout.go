package coursetest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// CopyCheckout copies what git tracks in the checkout at root, or would, to a folder that may not exist yet: files as they are now,
// without history.
func CopyCheckout(t *testing.T, root, to string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	list, err := cmd.Output()
	if err != nil {
		t.Fatalf("list the files of the checkout: %v", err)
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(string(list), "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		info, statErr := os.Stat(filepath.Join(root, name))
		if err != nil || statErr != nil {
			t.Fatal(err, statErr)
		}
		path := filepath.Join(to, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}
