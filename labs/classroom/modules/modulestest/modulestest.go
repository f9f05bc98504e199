// Package modulestest makes folders of modules for tests, of modules that exist nowhere else.
package modulestest

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

// Internet is a folder that stands in for all module proxies of the world.
type Internet string

// New makes an internet without modules.
func New(t testing.TB) Internet {
	t.Helper()
	return Internet(t.TempDir())
}

// Use makes this process one whose Go command reaches this internet alone, and has an empty module cache in home.
func (i Internet) Use(t testing.TB, home string) {
	t.Helper()
	for name, value := range map[string]string{
		"GOPROXY": "file://" + filepath.ToSlash(string(i)), "GOSUMDB": "off", "GOENV": "off", "GOTOOLCHAIN": "local",
		"GOFLAGS": "-modcacherw", "GOPATH": home, "GOMODCACHE": filepath.Join(home, "mod"),
	} {
		t.Setenv(name, value)
	}
}

// Path is where a version's file with that end is, such as .zip, below the folder dir of a GOPROXY.
func Path(t testing.TB, dir string, m module.Version, end string) string {
	t.Helper()
	escaped, err := module.EscapePath(m.Path)
	if err != nil {
		t.Fatal(err)
	}
	version, err := module.EscapeVersion(m.Version)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, filepath.FromSlash(escaped), "@v", version+end)
}

// Add publishes a version of a module: its files by their slash path, of which go.mod is made when it is not among them.
func (i Internet) Add(t testing.TB, m module.Version, files map[string]string) {
	t.Helper()
	if files["go.mod"] == "" {
		files["go.mod"] = "module " + m.Path + "\n"
	}
	dir := t.TempDir()
	for name, text := range files {
		Write(t, filepath.Join(dir, filepath.FromSlash(name)), text)
	}
	var archive bytes.Buffer
	if err := zip.CreateFromDir(&archive, m, dir); err != nil {
		t.Fatal(err)
	}
	Write(t, Path(t, string(i), m, ".mod"), files["go.mod"])
	Write(t, Path(t, string(i), m, ".info"), `{"Version":"`+m.Version+`"}`)
	Write(t, Path(t, string(i), m, ".zip"), archive.String())
}

// Sum is what go.sum says of a version that was added.
func (i Internet) Sum(t testing.TB, m module.Version) string {
	t.Helper()
	hash, err := dirhash.HashZip(Path(t, string(i), m, ".zip"), dirhash.Hash1)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) {
		return os.Open(Path(t, string(i), m, ".mod"))
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version, hash, m.Path, m.Version, mod)
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
