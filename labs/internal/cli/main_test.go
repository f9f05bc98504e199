package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An old Go that has fetched the right one for the checkout is not what learners' code is compiled with.
func TestTakeGoOfCheckout(t *testing.T) {
	dir := t.TempDir()
	for path, script := range map[string]string{
		"old/go":         `[ "${PWD##*/}" = checkout ] && echo "` + dir + `/fetched"`,
		"fetched/bin/go": "echo fetched for $GOOS",
		"checkout/file":  "",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "old")+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("GOOS", "plan9")
	before := os.Getenv("PATH")
	if takeGo(t.Context(), dir); os.Getenv("PATH") != before {
		t.Error("PATH has changed although there is no Go")
	}
	takeGo(t.Context(), filepath.Join(dir, "checkout"))
	if out, err := exec.Command("go").Output(); err != nil || string(out) != "fetched for\n" {
		t.Errorf("go says %q, %v", out, err)
	}
}

func TestCIConsents(t *testing.T) {
	for value, want := range map[string]bool{"": false, "false": false, "0": false, "true": true, "woodpecker": true} {
		if got := inCI(value); got != want {
			t.Errorf("CI=%s: %v, want %v", value, got, want)
		}
	}
}
