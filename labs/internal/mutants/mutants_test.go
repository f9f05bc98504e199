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

func TestParse(t *testing.T) {
	m, err := mutants.Parse(2, "labs/02-name/mutants/says-nothing.patch", []byte(silent))
	if err != nil {
		t.Fatal(err)
	}
	want := mutants.Mutant{
		Lab: 2, ID: "says-nothing", File: "labs/02-name/mutants/says-nothing.patch", Stage: 2,
		Misconception: "Whoever is named knows that they are meant.",
		Caught:        "says-name", Cause: "silent", Also: []string{"takes-name"},
	}
	ignorePatch := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".patch" }, cmp.Ignore())
	if diff := cmp.Diff(want, *m, ignorePatch); diff != "" {
		t.Error(diff)
	}
	m, err = mutants.Parse(2, "labs/02-name/mutants/says-nothing.patch", []byte("common: true\n"+silent))
	if err != nil || !m.Common {
		t.Errorf("a common one: %+v, %v", m, err)
	}
	if got := m.String(); got != "2/says-nothing" {
		t.Errorf("String() = %s", got)
	}
}

func TestParseRefuses(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"no description":     {"misconception", "---\nmisconception", "misconception: is missing"},
		"no diff":            {"---\ndiff", "diff", `no line "---"`},
		"an empty diff":      {silent[strings.Index(silent, "diff --git"):], "", "diff: there is none"},
		"no misconception":   {"Whoever is named knows that they are meant.", "", "misconception: is missing"},
		"no check":           {"caught: says-name\n", "", "caught: is missing"},
		"no cause":           {"cause: silent\n", "", "cause: is missing"},
		"an unknown field":   {"cause:", "reason: x\ncause:", "field reason not found"},
		"two lines":          {"Whoever", "|\n  Nobody\n  Whoever", "one sentence on one line"},
		"a changed marker":   {"-27,7 +27,6 @@ func main() {\n \t\t// lab:3 begin shout", "-27,7 +27,5 @@ func main() {\n-\t\t// lab:3 begin shout", "diff: changes a marker: -\t\t// lab:3 begin shout"},
		"a stage that is no": {"also:", "stage: two\nalso:", "description: "},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(silent, c.old, c.new, 1)
			if text == silent {
				t.Fatal("the test changes nothing")
			}
			_, err := mutants.Parse(2, "labs/02-name/mutants/says-nothing.patch", []byte(text))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("got %v, want one line with %q", err, c.want)
			}
		})
	}
	if _, err := mutants.Parse(2, "labs/02-name/mutants/Says_Nothing.patch", []byte(silent)); err == nil {
		t.Error("a name that is no id was taken")
	}
}

// withMutant is a course of three labs with one wrong answer to the second.
func withMutant(t *testing.T, text string) *course.Course {
	t.Helper()
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/02-name/mutants/says-nothing.patch", text)
	return coursetest.Load(t, root)
}

// only loads the one wrong answer of a course.
func only(t *testing.T, c *course.Course) *mutants.Mutant {
	t.Helper()
	all, err := mutants.Load(c)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 1 {
		t.Fatalf("%d mutants, want 1", len(all))
	}
	return all[0]
}

// The patch names lines of lab 3 and takes one of lab 2 away; what is rendered is stage 2 without it, and
// without the import that nobody needs any more.
func TestRenderTheStageOfThePatchedOperator(t *testing.T) {
	c := withMutant(t, silent)
	tree, err := only(t, c).Render(t.Context(), c, "")
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

// What others add to the operator must not make every patch below it stale.
func TestHunksAreFoundWhereTheirLinesMovedTo(t *testing.T) {
	c := withMutant(t, strings.Replace(silent, "@@ -27,7 +27,6 @@", "@@ -5,7 +5,6 @@", 1))
	tree, err := only(t, c).Render(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(tree["main.go"].Data), `"hello", os.Args[1]`) {
		t.Error("the line is still there")
	}
}

func TestPatchesMakeAndRemoveFiles(t *testing.T) {
	header := silent[:strings.Index(silent, "diff --git")]
	c := withMutant(t, header+`diff --git a/docs/usage.md b/docs/usage.md
deleted file mode 100644
--- a/docs/usage.md
+++ /dev/null
@@ -1 +0,0 @@
-# Usage
diff --git a/config/config.yaml b/config/other.yaml
similarity index 100%
rename from config/config.yaml
rename to config/other.yaml
diff --git a/new.go b/new.go
new file mode 100755
--- /dev/null
+++ b/new.go
@@ -0,0 +1 @@
+package main
`)
	tree, err := only(t, c).Render(t.Context(), c, "")
	if err != nil {
		t.Fatal(err)
	}
	right, err := c.Render(2)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"config/config.yaml", "config/other.yaml", "new.go"}, tree.Diff(right)); diff != "" {
		t.Error(diff)
	}
	if file := tree["new.go"]; string(file.Data) != "package main\n" || file.Mode != 0o755 {
		t.Errorf("new.go = %v %q", file.Mode, file.Data)
	}
}

// Whoever changes the operator reads which patch to fix, and where.
func TestPatchesThatDoNotApply(t *testing.T) {
	for name, c := range map[string]struct{ old, new, want string }{
		"another line": {"-\t\tfmt.Println(\"hello\", os.Args[1])", "-\t\tfmt.Println(\"hi\", os.Args[1])",
			"in operator: error: patch failed: main.go:27 error: main.go: patch does not apply"},
		"a damaged hunk": {"@@ -27,7 +27,6 @@", "@@ -27,9 +27,6 @@", "in operator: error: corrupt patch at line"},
		"no such file": {silent[strings.Index(silent, "diff --git"):], "diff --git a/mine.go b/mine.go\n--- a/mine.go\n+++ b/mine.go\n@@ -1 +1 @@\n-package main\n+package mine\n",
			"in operator: error: mine.go: No such file or directory"},
		"a file that exists": {silent[strings.Index(silent, "diff --git"):], "diff --git a/main.go b/main.go\nnew file mode 100644\n--- /dev/null\n+++ b/main.go\n@@ -0,0 +1 @@\n+package main\n",
			"in operator: error: main.go: already exists in working directory"},
		"a file outside": {silent[strings.Index(silent, "diff --git"):], "diff --git a/../main.go b/../main.go\nnew file mode 100644\n--- /dev/null\n+++ b/../main.go\n@@ -0,0 +1 @@\n+package main\n",
			"in operator: error: invalid path '../main.go'"},
		"no Go any more": {"-\t\tfmt.Println(\"hello\", os.Args[1])\n \t\treturn\n \t}\n", " \t\tfmt.Println(\"hello\", os.Args[1])\n \t\treturn\n-\t}\n",
			"not Go any more"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(silent, c.old, c.new, 1)
			if text == silent {
				t.Fatal("the test changes nothing")
			}
			co := withMutant(t, text)
			problems, err := mutants.Lint(t.Context(), co)
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
