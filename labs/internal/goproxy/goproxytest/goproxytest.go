// Package goproxytest makes module caches for tests, of modules that exist nowhere else.
package goproxytest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Cache is the folder cache/download of a module cache.
type Cache string

// New makes an empty cache.
func New(t testing.TB) Cache {
	t.Helper()
	return Cache(t.TempDir())
}

// Path is where the cache keeps a version's file with that end, such as .zip.
func (c Cache) Path(t testing.TB, m module.Version, end string) string {
	t.Helper()
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(string(c), filepath.FromSlash(escaped), "@v", version+end)
}

// Add puts a version of a module into the cache, as the Go command does: its files by their slash path, of which
// go.mod is made when it is not among them.
func (c Cache) Add(t testing.TB, m module.Version, files map[string]string) {
	t.Helper()
	if files["go.mod"] == "" {
		files["go.mod"] = "module " + m.Path + "\n"
	}
	archive := c.Path(t, m, ".zip")
	Write(t, c.Path(t, m, ".mod"), files["go.mod"])
	Write(t, c.Path(t, m, ".info"), `{"Version":"`+m.Version+`"}`)
	Write(t, archive, string(Zip(t, m, files)))
	hash, err := dirhash.HashZip(archive, dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	Write(t, archive+"hash", hash)
}

// Sum is what go.sum says of a version that was added.
func (c Cache) Sum(t testing.TB, m module.Version) string {
	t.Helper()
	hash, err := os.ReadFile(c.Path(t, m, ".ziphash"))
	if err != nil {
		t.Fatal(err)
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(c.Path(t, m, ".mod"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version, hash, m.Path, m.Version, mod)
}

// Zip is the zip of a version of a module.
func Zip(t testing.TB, m module.Version, files map[string]string) []byte {
	t.Helper()
	var all []zip.File
	for name, text := range files {
		all = append(all, file{name, text})
	}
	slices.SortFunc(all, func(a, b zip.File) int { return bytes.Compare([]byte(a.Path()), []byte(b.Path())) })
	var buffer bytes.Buffer
	if err := zip.Create(&buffer, m, all); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// Removable makes the folder removable when the test is over: the Go command takes the right to write from what it
// unpacks. Call it after the [testing.T.TempDir] that removes it.
func Removable(t testing.TB, dir string) {
	t.Helper()
	t.Cleanup(func() {
		_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				_ = os.Chmod(path, 0o755)
			}
			return nil
		})
	})
}

// Write writes a file and makes its folders.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// file is a file of a zip.
type file struct{ name, text string }

func (f file) Path() string                { return f.name }
func (f file) Lstat() (os.FileInfo, error) { return info{f}, nil }
func (f file) Open() (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader([]byte(f.text))), nil
}

// info is what package zip asks of a file.
type info struct{ file }

func (i info) Name() string      { return path.Base(i.name) }
func (i info) Size() int64       { return int64(len(i.text)) }
func (i info) Mode() os.FileMode { return 0o644 }
func (i info) IsDir() bool       { return false }
func (i info) Sys() any          { return nil }

// ModTime is not kept in the zip of a module.
func (i info) ModTime() time.Time { return time.Time{} }
