package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func TestFoldersOfOthersAreRefused(t *testing.T) {
	f := newFixture(t)
	root, home := f.course.Root, os.Getenv("HOME")
	at := func(dir, name, text string) {
		t.Helper()
		(&fixture{T: t, dir: dir}).write(name, text)
	}
	at(home, "thesis.txt", "my life")
	at(home, "mine/go.mod", "module example.com/mine\n")
	at(home, "empty/x", "")
	(&fixture{T: t, dir: home}).remove("empty/x")
	(&fixture{T: t, dir: home}).link(filepath.Join(home, "gone"), "nowhere")
	at(root, ".lab/history.jsonl", "")
	before := f.tree(home)
	for dir, want := range map[string]string{
		"/": "did not make", home: "did not make", root: "did not make", filepath.Dir(root): "did not make",
		filepath.Join(home, "mine"): "module example.com/greeter", filepath.Join(home, "empty"): "rmdir",
		filepath.Join(home, "thesis.txt"): "is a file", filepath.Join(home, "thesis.txt", "x"): "below one",
		filepath.Join(home, "nowhere"):  "leads nowhere",
		filepath.Join(root, "operator"): "belongs to the course", filepath.Join(root, "operator", "mine"): "belongs to the course",
		filepath.Join(root, "labs", "08-mine"): "belongs to the course", filepath.Join(root, ".lab", "w"): "belongs to the course",
	} {
		_, err := Bring(t.Context(), f.course, dir, 1, "before solve 1")
		if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", dir, err, want)
		}
	}
	if diff := before.Diff(f.tree(home)); diff != nil {
		t.Errorf("changed: %q", diff)
	}
}

func TestRealFollowsLinks(t *testing.T) {
	dir, links := Real(t.TempDir()), &fixture{T: t, dir: t.TempDir()}
	links.link(dir, "link")
	links.link(filepath.Join(dir, "none"), "nowhere")
	link, nowhere := filepath.Join(links.dir, "link"), filepath.Join(links.dir, "nowhere")
	for given, want := range map[string]string{
		link: dir, dir: dir, nowhere: nowhere, filepath.Join(dir, "yet"): filepath.Join(dir, "yet"),
		filepath.Join(link, "not", "yet"): filepath.Join(dir, "not", "yet"), filepath.Join(nowhere, "yet"): filepath.Join(nowhere, "yet"),
	} {
		if got := Real(given); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
	if !Contains(link, filepath.Join(dir, "yet")) || Contains(filepath.Join(dir, "yet"), dir) || Contains(dir, links.dir) {
		t.Error("Contains() does not follow links")
	}
}
