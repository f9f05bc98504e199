// Package coursetest makes small checkouts for tests.
package coursetest

import (
	_ "embed"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/example/operator-lab/labs/internal/course"
)

//go:embed course.txtar
var small []byte

// New writes the checkout of a course of three labs into a temporary folder
// and returns it. See course.txtar for what is in it.
func New(t testing.TB) (root string) {
	t.Helper()
	root = t.TempDir()
	for _, f := range txtar.Parse(small).Files {
		Write(t, root, f.Name, string(f.Data))
	}
	return root
}

// Load loads the course of the checkout at root.
func Load(t testing.TB, root string) *course.Course {
	t.Helper()
	c, err := course.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// Stage returns a temporary folder with a stage of the course.
func Stage(t testing.TB, c *course.Course, stage int) (dir string) {
	t.Helper()
	tree, err := c.Render(stage)
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	if err := tree.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Write writes a file of a checkout; name is a slash path below root.
func Write(t testing.TB, root, name, text string) {
	t.Helper()
	name = filepath.Join(root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// Read returns a file of a checkout.
func Read(t testing.TB, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// Example returns the block of code in docs/authoring.md that begins like this.
func Example(t testing.TB, root, begin string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```[a-z]+\n(" + regexp.QuoteMeta(begin) + ".*?)```")
	m := block.FindStringSubmatch(Read(t, root, "docs/authoring.md"))
	if m == nil {
		t.Fatalf("docs/authoring.md has no example that begins with %q", begin)
	}
	return m[1]
}
