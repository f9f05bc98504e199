package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestYAMLHasALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		size int
		ok   bool
	}{"as much as is read": {yamlLimit / 2, true}, "more": {yamlLimit/2 + 1, false}} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range []string{"a.yaml", "b.yml"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte("#"+strings.Repeat(" ", tc.size-1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := ReadManifests(dir); (err == nil) != tc.ok {
				t.Error(err)
			}
		})
	}
}

func TestAliasesAreNotDecoded(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte("a: &s text\nb: [*s, *s]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadManifests(dir); err == nil || !strings.Contains(err.Error(), "a.yaml: line 1") {
		t.Error(err)
	}
}
