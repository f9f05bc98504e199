package mutants_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/mutants"
)

const silent = `misconception: Whoever is named knows that they are meant.
caught: says-name
cause: silent
also: [takes-name]
---
diff --git a/main.go b/main.go
--- a/main.go
+++ b/main.go
@@ -27,7 +27,6 @@ func main() {
 		// lab:3 begin shout
 		os.Args[1] = strings.ToUpper(os.Args[1])
 		// lab:3 end
-		fmt.Println("hello", os.Args[1])
 		return
 	}
 	// lab:2 end
`

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no description":   {"misconception", "---\nmisconception", "misconception: has to be one sentence on one line"},
		"an unknown field": {"cause:", "reason: x\ncause:", "field reason not found"},
		"two lines":        {"Whoever", "|\n  Nobody\n  Whoever", "one sentence on one line"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mutants.Parse(2, "labs/02-name/mutants/says-nothing.patch", []byte(strings.Replace(silent, c.old, c.new, 1)))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
}

// withMutant is a course of three labs with one wrong answer to the second.
func withMutant(t *testing.T, text string) *course.Course {
	t.Helper()
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/02-name/mutants/says-nothing.patch", text)
	return coursetest.Load(t, root)
}

// The patch names lines of lab 3 and takes one of lab 2 away; what is rendered is stage 2 without it, and
// without the import that nobody needs any more.
func TestRenderPatchedOperator(t *testing.T) {
	c := withMutant(t, silent)
	all, err := mutants.Load(c)
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	tree, err := all[0].Render(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	right, err := c.Render(2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"main.go"}, tree.Diff(right)); diff != "" {
		t.Error(diff)
	}
	got := string(tree["main.go"].Data)
	if strings.Contains(got, `"hello", os.Args[1]`) || strings.Contains(got, "ToUpper") || strings.Contains(got, "lab:") {
		t.Errorf("rendered:\n%s", got)
	}
}

// Whoever changes the operator reads which patch to fix, and where.
func TestPatchesThatDoNotApply(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"another line": {"-\t\tfmt.Println(\"hello\", os.Args[1])", "-\t\tfmt.Println(\"hi\", os.Args[1])",
			"in operator: error: patch failed: main.go:27 error: main.go: patch does not apply"},
		"no Go any more": {"-\t\tfmt.Println(\"hello\", os.Args[1])\n \t\treturn\n \t}\n", " \t\tfmt.Println(\"hello\", os.Args[1])\n \t\treturn\n-\t}\n",
			"not Go any more"},
	} {
		t.Run(name, func(t *testing.T) {
			problems, err := mutants.Lint(t.Context(), withMutant(t, strings.Replace(silent, c.old, c.new, 1)))
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range problems {
				if p.File == "labs/02-name/mutants/says-nothing.patch" && strings.Contains(p.Text, c.want) {
					return
				}
			}
			t.Errorf("got %v, want %q", problems, c.want)
		})
	}
}
