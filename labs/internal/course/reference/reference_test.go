package reference_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/course/reference"
)

// workspace is a small course and a workspace in which its solution of a lab stands.
func workspace(t *testing.T, lab int) (*course.Course, string) {
	t.Helper()
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	tree, err := c.Render(lab)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := tree.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	return c, dir
}

func compared(t *testing.T, c *course.Course, dir string, lab int) string {
	t.Helper()
	files, err := reference.Compare(c, dir, lab)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	reference.Print(&out, files)
	return out.String()
}

func TestTheSolutionDoesNotDifferFromItself(t *testing.T) {
	c, dir := workspace(t, 3)
	if got := compared(t, c, dir, 3); got != "" {
		t.Errorf("it says:\n%s", got)
	}
}

func TestADifferenceIsShownWithTheReasonOfItsRegion(t *testing.T) {
	c, dir := workspace(t, 2)
	coursetest.Write(t, dir, "config/config.yaml", "spec:\n  a: 1\n\n  b: 5\n  d: 4\n")
	want := `--- yours/config/config.yaml
+++ ours/config/config.yaml
@@ -1,5 +1,5 @@
# lab 2: Set b.
 spec:
   a: 1
 
-  b: 5
+  b: 2
   d: 4

`
	if diff := cmp.Diff(want, compared(t, c, dir, 2)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAHunkSaysWhereItStands(t *testing.T) {
	root, dir, long := coursetest.New(t), t.TempDir(), strings.Repeat("- x\n", 20)
	coursetest.Write(t, root, "operator/config/long.yaml", long+"- y\n")
	c, err := course.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	coursetest.Write(t, dir, "config/long.yaml", long)
	if got, want := compared(t, c, dir, 1), "@@ -18,3 +18,4 @@"; !strings.Contains(got, want) {
		t.Errorf("it lacks %s:\n%s", want, got)
	}
}

func TestADifferenceOutsideOfEveryRegionHasNoReason(t *testing.T) {
	c, dir := workspace(t, 2)
	coursetest.Write(t, dir, "config/config.yaml", "spec:\n  a: 1\n\n  b: 2\n  d: 5\n")
	files, err := reference.Compare(c, dir, 2)
	if err != nil || len(files) != 1 || len(files[0].Hunks) != 1 {
		t.Fatalf("%+v, %v", files, err)
	}
	if got := files[0].Hunks[0].Reasons; got != nil {
		t.Errorf("reasons %q", got)
	}
}

func TestOnlyWhatPeopleWriteIsCompared(t *testing.T) {
	c, dir := workspace(t, 3)
	for name, text := range map[string]string{
		"config/made.yaml": "made: by another version\n", "config/x_test.go": "package x\n", "Makefile": "all:\n", "config/binary": "\x00",
	} {
		coursetest.Write(t, dir, name, text)
	}
	if got := compared(t, c, dir, 3); got != "" {
		t.Errorf("it says:\n%s", got)
	}
}

func TestAFileThatOneSideHasIsNamed(t *testing.T) {
	c, dir := workspace(t, 3)
	coursetest.Write(t, dir, "internal/mine.go", "package internal\n")
	if err := os.Remove(filepath.Join(dir, "config", "config.yaml")); err != nil {
		t.Fatal(err)
	}
	want := `only ours: config/config.yaml
@@ -0,0 +1,5 @@
# lab 2: Set b.
+spec:
+  a: 1
+
+  b: 2
+  d: 4

only yours: internal/mine.go

`
	if diff := cmp.Diff(want, compared(t, c, dir, 3)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
