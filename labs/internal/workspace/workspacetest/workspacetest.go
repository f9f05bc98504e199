// Package workspacetest makes small learner modules for tests: a right answer to labs 1 to 3, and edits
// that turn it into wrong ones.
package workspacetest

import (
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// The files of the module, each with .txt appended so that they are not part of ours.
//
//go:embed files
var files embed.FS

const (
	// Types is the path of the file with the API types.
	Types = "api/v1alpha1/memcached_types.go"
	// DeepCopy is the path of the generated deep copies.
	DeepCopy = "api/v1alpha1/zz_generated.deepcopy.go"
	// Manifest is the path of the generated custom resource definition.
	Manifest = "config/crd/bases/cache.example.com_memcacheds.yaml"
	// Sample is the path of the sample.
	Sample = "config/samples/cache_v1alpha1_memcached.yaml"
)

// Edit changes a module below dir.
type Edit func(t testing.TB, dir string)

// New makes a module with the dependencies of the course's operator, applies the edits, and returns
// its folder, which the test's end removes.
func New(t testing.TB, edits ...Edit) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		coursetest.Write(t, dir, name, coursetest.Read(t, operator(), name))
	}
	err := fs.WalkDir(files, "files", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := files.ReadFile(path)
		rel := strings.TrimSuffix(strings.TrimPrefix(path, "files/"), ".txt")
		coursetest.Write(t, dir, rel, string(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
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
	return func(t testing.TB, dir string) {
		t.Helper()
		coursetest.Write(t, dir, path, text)
	}
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

// operator is the folder of the course's operator, whose dependencies a learner's module has.
func operator() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "..", "..", "operator")
}
