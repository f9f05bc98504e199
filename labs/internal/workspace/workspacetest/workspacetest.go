// Package workspacetest makes small learner modules for tests: a right answer to labs 1 to 3, and edits
// that turn it into wrong ones.
package workspacetest

import (
	"embed"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// Each has .txt appended: the module is no part of ours.
//
//go:embed files
var files embed.FS

// The files of the module.
const (
	Types    = "api/v1alpha1/memcached_types.go"
	DeepCopy = "api/v1alpha1/zz_generated.deepcopy.go"
	Manifest = "config/crd/bases/cache.example.com_memcacheds.yaml"
	Sample   = "config/samples/cache_v1alpha1_memcached.yaml"
)

// Edit changes a module below dir.
type Edit func(t testing.TB, dir string)

// New makes a module with the dependencies of the course's operator, applies the edits, and returns
// its folder, which the test's end removes.
func New(t testing.TB, edits ...Edit) string {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	dir, operator := t.TempDir(), filepath.Join(filepath.Dir(here), "..", "..", "..", "..", "operator")
	for _, name := range []string{"go.mod", "go.sum"} {
		coursetest.Write(t, dir, name, coursetest.Read(t, operator, name))
	}
	for _, name := range []string{Types, DeepCopy, Manifest, Sample} {
		data, err := files.ReadFile("files/" + name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		coursetest.Write(t, dir, name, string(data))
	}
	for _, edit := range edits {
		edit(t, dir)
	}
	return dir
}

// Replace changes all occurrences of old in one file. There has to be one.
func Replace(path, old, replacement string) Edit {
	return func(t testing.TB, dir string) {
		t.Helper()
		text := coursetest.Read(t, dir, path)
		if !strings.Contains(text, old) {
			t.Fatalf("%s does not contain %q", path, old)
		}
		coursetest.Write(t, dir, path, strings.ReplaceAll(text, old, replacement))
	}
}

// Write makes or replaces one file.
func Write(path, text string) Edit {
	return func(t testing.TB, dir string) { coursetest.Write(t, dir, path, text) }
}

// Remove takes one file or folder away.
func Remove(path string) Edit {
	return func(t testing.TB, dir string) {
		t.Helper()
		if err := os.RemoveAll(filepath.Join(dir, filepath.FromSlash(path))); err != nil {
			t.Fatal(err)
		}
	}
}
