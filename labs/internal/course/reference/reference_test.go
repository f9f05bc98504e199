package reference_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/fatih/color"
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
	diff, err := reference.Diff(t.Context(), c, dir, lab)
	if err != nil {
		t.Fatal(err)
	}
	return diff
}

// withoutIndex leaves out the lines with git's digests.
func withoutIndex(diff string) string {
	return regexp.MustCompile(`(?m)^index .*\n`).ReplaceAllString(diff, "")
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
	want := `diff --git yours/config/config.yaml ours/config/config.yaml
--- yours/config/config.yaml
+++ ours/config/config.yaml
@@ -1,5 +1,5 @@
# lab 2: Set b.
 spec:
   a: 1
 
-  b: 5
+  b: 2
   d: 4
`
	if diff := cmp.Diff(want, withoutIndex(compared(t, c, dir, 2))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestColoursDoNotHideTheReasons(t *testing.T) {
	color.NoColor = false
	t.Cleanup(func() { color.NoColor = true })
	c, dir := workspace(t, 2)
	coursetest.Write(t, dir, "config/config.yaml", "spec:\n  a: 1\n\n  b: 5\n  d: 4\n")
	got := compared(t, c, dir, 2)
	if !regexp.MustCompile("@@ -1,5 \\+1,5 @@.*\n.*# lab 2: Set b\\.").MatchString(got) || !strings.Contains(got, "\x1b[32m+") {
		t.Errorf("it says:\n%q", got)
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
	if got := compared(t, c, dir, 2); !strings.Contains(got, "-  d: 5") || strings.Contains(got, "# lab") {
		t.Errorf("it says:\n%s", got)
	}
}

func TestOnlyWhatPeopleWriteIsCompared(t *testing.T) {
	c, dir := workspace(t, 3)
	for name, text := range map[string]string{
		"config/made.yaml": "made: by another version\n", "config/x_test.go": "package x\n", "Makefile": "all:\n", "config/binary": "\x00",
		"config/long.yaml": strings.Repeat("\n", 65<<10), // each line of which takes a hundred bytes when it is explained
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
	want := `diff --git ours/config/config.yaml ours/config/config.yaml
new file mode 100644
--- /dev/null
+++ ours/config/config.yaml
@@ -0,0 +1,5 @@
# lab 2: Set b.
+spec:
+  a: 1
+
+  b: 2
+  d: 4
only yours: internal/mine.go
`
	if diff := cmp.Diff(want, withoutIndex(compared(t, c, dir, 3))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
