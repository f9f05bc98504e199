package course_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

const greet = `package greet

// lab:3 begin shouting

// Shout is for lab 3. Nobody else needs it.
func Shout(text string) string {
	return text + "!" // loud
}

// lab:3 end

// +kubebuilder:default=1
type Old int
`

func TestDiffShowsWhatTheLabAdds(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "operator/internal/greet/greet.go", greet)
	c := coursetest.Load(t, root)
	const file, yaml = "internal/greet/greet.go", "config/config.yaml"
	for name, tc := range map[string]struct{ file, text, want string }{
		"the solution":           {},
		"a generated file":       {file: "config/made.yaml", text: "made: by another version\n"},
		"a test":                 {file: "config/x_test.go", text: "package x\n"},
		"a file of the scaffold": {file: "Makefile", text: "all:\n"},
		"a file of yours":        {file: "internal/mine.go", text: "package internal\n"},
		"an earlier lab":         {file: yaml, text: "spec: {}\n"},
		"another order, without comments": {file: file,
			text: "package greet\n// +kubebuilder:default=1\ntype Old int\n\nfunc Shout(text string) string {\n\n\t// Loud.\n\treturn text + \"!\"\n}\n"},
		"another function": {file: file, text: "package greet\n\nfunc Shout(text string) string { return text }\n",
			want: "- internal/greet: Shout\n  Shout is for lab 3.\n\n--- yours, internal/greet: Shout\n+++ ours, internal/greet: Shout\n@@ -1 +1,3 @@\n" +
				"-func Shout(text string) string { return text }\n+func Shout(text string) string {\n+\treturn text + \"!\"\n+}\n"},
		"no file": {file: file, want: "- internal/greet: Shout\n  Shout is for lab 3.\n\n--- yours, internal/greet: Shout\n+++ ours, internal/greet: Shout\n@@ -0,0 +1,3 @@\n" +
			"+func Shout(text string) string {\n+\treturn text + \"!\"\n+}\n"},
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
			got, err := c.Diff(dir, 3)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
