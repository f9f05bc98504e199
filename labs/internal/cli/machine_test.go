package cli

import (
	"os"
	"path/filepath"
	"testing"
)

func TestGoVersionOfCheckout(t *testing.T) {
	root := t.TempDir()
	if got := goVersion(root); got != "" {
		t.Errorf("goVersion() = %q without a go.mod", got)
	}
	if err := os.WriteFile(filepath.Join(root, "go.mod"), []byte("module m\n\ngo 1.26.0\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if got := goVersion(root); got != "1.26.0" {
		t.Errorf("goVersion() = %q, want 1.26.0", got)
	}
}

func TestCIConsents(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "0": false, "true": true, "woodpecker": true} {
		if got := inCI(value); got != want {
			t.Errorf("CI=%s: %v, want %v", value, got, want)
		}
	}
}
