package goproxy_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/internal/goproxy"
	"github.com/example/operator-lab/labs/internal/goproxy/goproxytest"
)

// learner is a machine that has Go and reaches nothing but the room.
type learner struct {
	dir  string
	room *httptest.Server
	sums string // GOSUMDB
}

func newLearner(t *testing.T, room *httptest.Server, sums string) learner {
	t.Helper()
	return learner{t.TempDir(), room, sums}
}

// run runs the Go command in a module with that go.mod.
func (l learner) run(t *testing.T, mod string, args ...string) (string, error) {
	t.Helper()
	work := t.TempDir()
	goproxytest.Write(t, filepath.Join(work, "go.mod"), mod)
	main := "package main\n\nimport _ \"example.com/some/lib\"\n\nfunc main() {}\n"
	goproxytest.Write(t, filepath.Join(work, "main.go"), main)
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = work
	// Without a HOME: in one, Go's telemetry would still write when the test is over.
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GOPATH=" + filepath.Join(l.dir, "go"),
		"GOCACHE=" + filepath.Join(l.dir, "build"),
		"GOPROXY=" + l.room.URL, "GOSUMDB=" + l.sums, "GOFLAGS=-modcacherw", "GOENV=off", "GOTOOLCHAIN=local", "GOWORK=off",
	}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// forget is a machine of the same person whose module cache is empty, but which knows what the database said before.
func (l learner) forget(t *testing.T) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(l.dir, "go", "pkg", "mod")); err != nil {
		t.Fatal(err)
	}
}

func sums(t *testing.T, dir string) *goproxy.Sums {
	t.Helper()
	s, err := goproxy.OpenSums(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const needsLib = "module example.com/mine\n\ngo 1.26\n\nrequire example.com/some/lib v1.9.0\n"

func TestGoDownloadsAndVerifiesWithNothingButTheRoom(t *testing.T) {
	c := room(t)
	s := sums(t, t.TempDir())
	defer s.Close()
	srv := httptest.NewServer(serve(t, c, goproxy.Options{Sums: s}))
	defer srv.Close()
	l := newLearner(t, srv, s.Key())
	// There is no go.sum: the hashes come from the room's database.
	if out, err := l.run(t, needsLib, "mod", "download", "-json", "all"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := l.run(t, needsLib, "list", "-mod=mod", "-deps", ".")
	if err != nil || !strings.Contains(out, "example.com/some/lib") {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := l.run(t, needsLib, "get", "github.com/Azure/Go@v1.0.0-RC1", "example.com/commits@latest"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	out, err = l.run(t, needsLib, "get", "example.com/none@latest")
	if err == nil || !strings.Contains(out, "not in this room") {
		t.Errorf("%v\n%s", err, out)
	}
}

// Go takes no toolchain without a database of checksums, whatever GOSUMDB says, so the room needs one.
func TestGoTakesToolchainsFromTheRoomAlone(t *testing.T) {
	c := goproxytest.New(t)
	toolchain := version("golang.org/toolchain", "v0.0.1-go1.99.0.windows-arm64")
	c.Add(t, toolchain, map[string]string{"bin/go.exe": "MZ"})
	s := sums(t, t.TempDir())
	defer s.Close()
	srv := httptest.NewServer(serve(t, c, goproxy.Options{Sums: s}))
	defer srv.Close()
	get := func(gosumdb string) (string, error) {
		return newLearner(t, srv, gosumdb).run(t, needsLib, "mod", "download", toolchain.String())
	}
	if out, err := get(s.Key()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := get("off"); err == nil {
		t.Errorf("the room's database is not needed any more:\n%s", out)
	}
}

// What was changed on its way, or on the instructor's disk, is refused.
func TestGoRefusesAZipThatIsNotWhatTheRoomVouchesFor(t *testing.T) {
	c := room(t)
	m := version("example.com/some/lib", "v1.9.0")
	forged := goproxytest.Zip(t, m, map[string]string{
		"go.mod": "module example.com/some/lib\n", "lib.go": "package lib // forged\n",
	})
	goproxytest.Write(t, c.Path(t, m, ".zip"), string(forged))
	s := sums(t, t.TempDir())
	defer s.Close()
	srv := httptest.NewServer(serve(t, c, goproxy.Options{Sums: s}))
	defer srv.Close()
	out, err := newLearner(t, srv, s.Key()).run(t, needsLib, "mod", "download")
	if err == nil || !strings.Contains(out, "SECURITY ERROR") {
		t.Errorf("%v\n%s", err, out)
	}
}

// A Go command calls a database that has changed an attack. The room's may be stopped, crash, and have new modules.
func TestTheDatabaseOnlyGrows(t *testing.T) {
	c, dir := room(t), t.TempDir()
	var current http.Handler
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { current.ServeHTTP(w, r) }))
	defer srv.Close()
	key, err := goproxy.Key(dir)
	if err != nil {
		t.Fatal(err)
	}
	l := newLearner(t, srv, key)
	download := func(modules ...module.Version) {
		t.Helper()
		s := sums(t, dir)
		if s.Key() != key {
			t.Fatal("the key is another one")
		}
		current = serve(t, c, goproxy.Options{Sums: s})
		l.forget(t)
		for _, m := range modules {
			if out, err := l.run(t, needsLib, "mod", "download", m.String()); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	lib, azure := version("example.com/some/lib", "v1.9.0"), version("github.com/Azure/Go", "v1.0.0-RC1")
	download(lib, azure)
	f, err := os.OpenFile(filepath.Join(dir, "go.sum"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("example.com/half v1.0.0 h1:abc\nexample.com/ha"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	// It comes first by name, and must not come first in the database.
	later := version("example.com/a", "v1.0.0")
	c.Add(t, later, map[string]string{})
	download(azure, later, lib)
	download(lib, later)
	for name, mode := range map[string]os.FileMode{"key": 0o600, "go.sum": 0o600} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
}

func TestTheDatabaseAnswersOnlyForWhatIsServed(t *testing.T) {
	s := sums(t, t.TempDir())
	defer s.Close()
	p := serve(t, room(t), goproxy.Options{Sums: s, Private: "corp.example.com"})
	name, _, _ := strings.Cut(s.Key(), "+")
	for path, code := range map[string]int{
		"/supported":                             http.StatusOK,
		"/latest":                                http.StatusOK,
		"/lookup/example.com/some/lib@v1.9.0":    http.StatusOK,
		"/tile/8/0/000.p/1":                      http.StatusOK,
		"/lookup/example.com/some/lib@v1.9.1":    http.StatusNotFound,
		"/lookup/corp.example.com/secret@v1.0.0": http.StatusNotFound,
		"/tile/30/0/000":                         http.StatusNotFound, // would take all memory
		"/tile/8/0/000":                          http.StatusNotFound,
		"/tile/8/data/000":                       http.StatusNotFound,
		"/tile/8/63/x999/x999/x999/999":          http.StatusNotFound,
		"/key":                                   http.StatusNotFound,
		"/../../example.com/some/lib/@v/v1.9.0.ziphash":    http.StatusNotFound,
		"/lookup/example.com/some/lib@v1.9.0/../../../key": http.StatusBadRequest,
	} {
		if path == "/tile/8/0/000.p/1" {
			ask(p, http.MethodGet, "/sumdb/"+name+"/lookup/example.com/some/lib@v1.9.0")
		}
		if got := ask(p, http.MethodGet, "/sumdb/"+name+path); got.Code != code {
			t.Errorf("GET %s: %d %q, want %d", path, got.Code, got.Body, code)
		}
	}
	if got := ask(p, http.MethodGet, "/sumdb/sum.golang.org/supported"); got.Code != http.StatusNotFound {
		t.Errorf("the room speaks for sum.golang.org: %d", got.Code)
	}
}

func TestOneProcessKeepsTheDatabase(t *testing.T) {
	dir := t.TempDir()
	first := sums(t, dir)
	if _, err := goproxy.OpenSums(dir); !errors.Is(err, goproxy.ErrInUse) {
		t.Errorf("a second one: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := sums(t, dir).Close(); err != nil {
		t.Error(err)
	}
	goproxytest.Write(t, filepath.Join(dir, "go.sum"), "one two\nthree four\n")
	if _, err := goproxy.OpenSums(dir); err == nil || !strings.Contains(err.Error(), "go.sum") {
		t.Errorf("a damaged log: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "go.sum")); err != nil {
		t.Fatal(err)
	}
	if err := sums(t, dir).Close(); err != nil {
		t.Errorf("who was refused keeps the lock: %v", err)
	}
}
