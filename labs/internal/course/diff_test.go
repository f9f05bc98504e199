package course_test

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestDiffShowsWhatPeopleWrite(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for name, tc := range map[string]struct{ file, text, want string }{
		"the solution":                 {},
		"a generated file":             {file: "config/made.yaml", text: "made: by another version\n"},
		"a test":                       {file: "config/x_test.go", text: "package x\n"},
		"a file of the scaffold":       {file: "Makefile", text: "all:\n"},
		"a file that only yours has":   {file: "internal/mine.go", text: "package internal\n"},
		"a file that only yours lacks": {file: "config/config.yaml", want: "--- /dev/null\n+++ ours/config/config.yaml\n@@ -0,0 +1,5 @@\n+spec:\n+  a: 1\n+\n+  b: 2\n+  d: 4\n"},
		"a difference": {file: "config/config.yaml", text: "spec:\n  a: 1\n\n  b: 5\n  d: 4\n",
			want: "--- yours/config/config.yaml\n+++ ours/config/config.yaml\n@@ -1,5 +1,5 @@\n spec:\n   a: 1\n \n-  b: 5\n+  b: 2\n   d: 4\n"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := coursetest.Stage(t, c, 3)
			switch {
			case tc.text != "":
				coursetest.Write(t, dir, tc.file, tc.text)
			case tc.file != "":
				if err := os.Remove(filepath.Join(dir, tc.file)); err != nil {
					t.Fatal(err)
				}
			}
			got, err := c.Diff(t.Context(), dir, 3)
			if err != nil {
				t.Fatal(err)
			}
			got = regexp.MustCompile(`(?m)^(diff|index|new file) .*\n`).ReplaceAllString(got, "")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
