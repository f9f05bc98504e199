package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// install puts programs with these scripts, and nothing else, on PATH.
func install(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

const (
	answers  = "echo 1.2.3"
	noDaemon = "echo 'Cannot connect to the daemon' >&2; exit 1"
)

func TestDetect(t *testing.T) {
	for name, tc := range map[string]struct {
		scripts map[string]string
		want    string // the engine
		errs    []string
	}{
		"the first that answers": {map[string]string{"docker": noDaemon, "podman": answers, "nerdctl": answers}, "podman", nil},
		"none is installed":      {nil, "", []string{"docker", "podman", "nerdctl", "installed"}},
		"none answers":           {map[string]string{"docker": noDaemon}, "", []string{"docker", "Cannot connect to the daemon"}},
	} {
		t.Run(name, func(t *testing.T) {
			install(t, tc.scripts)
			got, err := Detect(t.Context())
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Fatalf("Detect() = %q, %v, want %q", got, err, tc.want)
			}
			for _, word := range tc.errs {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %q does not say %q", err, word)
				}
			}
		})
	}
}
