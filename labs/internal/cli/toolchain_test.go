package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// An old Go that has fetched the right one for the checkout is not what learners' code is compiled with.
func TestTheGoOfTheCheckoutIsTaken(t *testing.T) {
	dir := t.TempDir()
	checkout, old, fetched := filepath.Join(dir, "checkout"), filepath.Join(dir, "old"), filepath.Join(dir, "fetched")
	program := func(path, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(checkout, 0o755); err != nil {
		t.Fatal(err)
	}
	program(filepath.Join(old, "go"), fmt.Sprintf(`[ "$PWD" = %q ] && echo %q || echo /nowhere`, checkout, fetched))
	program(filepath.Join(fetched, "bin", "go"), "echo this one")
	t.Setenv("PATH", old+string(os.PathListSeparator)+os.Getenv("PATH"))
	before := os.Getenv("PATH")
	takeGo(t.Context(), dir)
	if os.Getenv("PATH") != before {
		t.Error("a Go that is not there is looked for first")
	}
	takeGo(t.Context(), checkout)
	if out, err := exec.Command("go").Output(); err != nil || string(out) != "this one\n" {
		t.Errorf("go says %q, %v", out, err)
	}
}
