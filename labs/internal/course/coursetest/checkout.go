package coursetest

import (
	"os"
	"os/exec"
	"testing"
)

// CopyCheckout copies what git tracks in the checkout at root, or would, to a folder that may not exist yet: files as they are
// now, without history.
func CopyCheckout(t *testing.T, root, to string) {
	t.Helper()
	if err := os.MkdirAll(to, 0o755); err != nil {
		t.Fatal(err)
	}
	const files = "git ls-files -z --cached --others --exclude-standard" // those removed and not yet committed, too
	cmd := exec.CommandContext(t.Context(), "sh", "-c", files+` | tar -c --null --ignore-failed-read -T - 2>/dev/null | tar -x -C "$1"`, "sh", to)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("copy the checkout: %v\n%s", err, out)
	}
}
