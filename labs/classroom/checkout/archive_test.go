package checkout_test

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/classroom/checkout"
)

// repository is a checkout with one commit, and with what belongs to its owner alone.
func repository(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	write(t, root, ".gitignore", "/.lab/\n")
	write(t, root, "labs/course.yaml", "schema: 1\n")
	git(t, root, "init", "-q")
	git(t, root, "add", ".")
	git(t, root, "-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "Begin")
	write(t, root, ".lab/board/secret", "tokens")
	write(t, root, "notes.txt", "who is stuck")
	return root
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
}

// unpack lists the files of an archive, with what is in them.
func unpack(t *testing.T, r io.Reader) map[string]string {
	t.Helper()
	unzipped, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
}

func TestAnArchiveHasWhatIsCommittedAndNothingElse(t *testing.T) {
	root := repository(t)
	a, err := checkout.Pack(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	if a.Changed || len(a.Commit) != 40 || a.Size() == 0 {
		t.Errorf("%+v", a)
	}
	srv := httptest.NewServer(a)
	defer srv.Close()
	resp, err := srv.Client().Get(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	files := unpack(t, resp.Body)
	var names []string
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	if want := []string{"operator-lab/.gitignore", "operator-lab/labs/course.yaml"}; !slices.Equal(names, want) {
		t.Errorf("%q", names)
	}

	// What is not committed is not in it, and is said.
	write(t, root, "labs/course.yaml", "schema: 2\n")
	if a, err = checkout.Pack(t.Context(), root); err != nil || !a.Changed {
		t.Errorf("%+v, %v", a, err)
	}
	w := httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/course.tar.gz", nil))
	if got := unpack(t, w.Body)["operator-lab/labs/course.yaml"]; got != "schema: 1\n" {
		t.Errorf("course.yaml: %q", got)
	}

	dir := filepath.Join(t.TempDir(), "course")
	if err := a.Unpack(t.Context(), dir); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "labs", "course.yaml")); string(got) != "schema: 1\n" {
		t.Errorf("course.yaml, unpacked: %q, %v", got, err)
	}

	again := httptest.NewRequest(http.MethodGet, "/course.tar.gz", nil)
	again.Header.Set("If-None-Match", `"`+a.Commit+`"`)
	w = httptest.NewRecorder()
	a.ServeHTTP(w, again)
	if w.Code != http.StatusNotModified {
		t.Errorf("the same commit is sent again: %d", w.Code)
	}
	w = httptest.NewRecorder()
	a.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/course.tar.gz", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", w.Code)
	}
}

func TestOnlyACheckoutIsPacked(t *testing.T) {
	root := repository(t)
	_, err := checkout.Pack(t.Context(), filepath.Join(root, "labs"))
	if err == nil || !strings.Contains(err.Error(), "another repository") {
		t.Errorf("a folder of another repository: %v", err)
	}
	if _, err := checkout.Pack(t.Context(), t.TempDir()); err == nil {
		t.Error("a folder without a repository is packed")
	}
	// A hook of git's speaks of its own repository.
	t.Setenv("GIT_DIR", filepath.Join(t.TempDir(), "elsewhere"))
	if _, err := checkout.Pack(t.Context(), root); err != nil {
		t.Error(err)
	}
}
