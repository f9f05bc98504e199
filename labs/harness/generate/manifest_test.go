package generate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/finding/findingtest"
	"github.com/example/operator-lab/labs/internal/suite"
)

func TestYAMLHasALimit(t *testing.T) {
	for name, tc := range map[string]struct {
		size int
		ok   bool
	}{"as much as is read": {suite.FileLimit / 2, true}, "more": {suite.FileLimit/2 + 1, false}} {
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

// Types that are made for it give two hundred megabytes of generated code, which each process of a run would parse.
func TestGeneratedFilesHaveALimit(t *testing.T) {
	dir := t.TempDir()
	for size, cause := range map[int]string{filesLimit / 2: "", filesLimit + 1: CauseFailed} {
		if err := os.WriteFile(filepath.Join(dir, deepCopyFile), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := readFiles(dir, deepCopyFile)
		findingtest.Require(t, err, cause, "MiB")
	}
}

func TestWhatIsAnObject(t *testing.T) {
	for text, want := range map[string]int{
		"kind: A\n---\nkind: B\n": 2,
		"kind: List\nitems: [{kind: A}, {kind: B}, {kind: List, items: [{kind: C}]}]\n": 3,
		"- {op: add, path: /a, value: b}\n":                                             0, // a patch of kustomize
		"kind: Widget\nitems: [a, b]\n":                                                 1,
	} {
		if all, err := parse("a.yaml", text); err != nil || len(all) != want {
			t.Errorf("%q has %d objects (%v), want %d", text, len(all), err, want)
		}
	}
}
