package course_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func render(t *testing.T, c *course.Course, stage int) course.Tree {
	t.Helper()
	tree, err := c.Render(stage)
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestRenderWritesTheStage(t *testing.T) {
	const options = "// Options are what main takes.\ntype Options struct {\n\t// Name is whom to greet.\n\tName string\n\n" +
		"\t// TODO(lab 3): Add the field Loud.\n}\n\nfunc main() {\n"
	c := coursetest.Load(t, coursetest.New(t))
	for _, tc := range []struct {
		name, file, want string
		stage            int
	}{
		{"one TODO for the outer region", "main.go", "package main\n\n" + options + "\t// TODO(lab 1): Say hello.\n\n\tprintln(\"?\")\n}\n", 0},
		{"known regions and their imports", "main.go", "package main\n\nimport (\n\t\"fmt\"\n\t\"os\"\n)\n\n" + options +
			"\tif len(os.Args) > 1 {\n\t\tfmt.Println(\"hello\", os.Args[1])\n\t\treturn\n\t}\n\n\tfmt.Println(\"hello\")\n}\n", 2},
		{"lines after before", "config/config.yaml", "spec:\n  a: 1\n\n  # TODO(lab 2): Set b.\n  c: 3\n  d: 4\n", 1},
		{"no lines after before", "config/config.yaml", "spec:\n  a: 1\n\n  b: 2\n  d: 4\n", 2},
		{"the generated file of its stage", "zz_generated.txt", "made of stage 0\n", 0},
		{"a stale generated file", "zz_generated.txt", "made of stage 0\n", 1},
		{"the last generated file", "zz_generated.txt", "made of stage 3\n", 2},
		{"a file that enters later", "docs/usage.md", "", 2},
		{"a file that enters", "docs/usage.md", "# Usage\n", 3},
		{"a generated file that is not made yet", "config/made.yaml", "", 2},
		{"a file that no stage has", "main_test.go", "", 3},
	} {
		if diff := cmp.Diff(tc.want, string(render(t, c, tc.stage)[tc.file].Data)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
	if _, err := c.Render(4); err == nil || !strings.Contains(err.Error(), "0 to 3") {
		t.Error(err)
	}
}

// renderText renders a file of the small course whose content is given.
func renderText(t *testing.T, name, text string, stage int) (string, error) {
	t.Helper()
	root := coursetest.New(t)
	coursetest.Write(t, root, "operator/"+name, text)
	tree, err := coursetest.Load(t, root).Render(stage)
	return string(tree[name].Data), err
}

func TestRenderDropsOnlyUnusedImports(t *testing.T) {
	const source = `package p

import (
	_ "embed"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/api/core/v1"
	greet "example.com/greet/v2"

	// +kubebuilder:scaffold:imports
)

// lab:2 begin uses-all

var _ = fmt.Sprint(appsv1.Deployment{}, v1.Pod{}, greet.Hello)

// lab:2 before
// var _ = v1.Pod{}
// lab:2 end
`
	got, err := renderText(t, "p.go", source, 1)
	if err != nil {
		t.Fatal(err)
	}
	want := `package p

import (
	_ "embed"

	"k8s.io/api/core/v1"
	// +kubebuilder:scaffold:imports
)

var _ = v1.Pod{}
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestRenderEmptyLines(t *testing.T) {
	const yaml = "a: 1\n\n\n# lab:2 begin b\n\nb: 2\n\n# lab:2 end\n\nc: 3\n"
	// A TODO must not become the first line of the next declaration's comment.
	const declaration = "package p\n\n// lab:2 begin kinds Say what it is.\n\n// T is new.\ntype T int\n\n" +
		"// lab:2 before\n// // T is old.\n// type T string\n// lab:2 end\n"
	for _, tc := range []struct {
		name, text, want string
		stage            int
	}{
		{"a.yaml", yaml, "a: 1\n\nc: 3\n", 1},
		{"a.yaml", yaml, "a: 1\n\nb: 2\n\nc: 3\n", 2},
		{"p.go", declaration, "package p\n\n// TODO(lab 2): Say what it is.\n\n// T is old.\ntype T string\n", 1},
	} {
		if got, err := renderText(t, tc.name, tc.text, tc.stage); err != nil || got != tc.want {
			t.Errorf("stage %d: %q, %v", tc.stage, got, err)
		}
	}
}

func TestRenderRefusesBrokenRegions(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no end":              {"# lab:1 begin a\n", "operator/f.yaml:1: region a has no \"lab:1 end\""},
		"end without begin":   {"# lab:1 end\n", "f.yaml:1: lab:1 end  is out of place"},
		"inner before outer":  {"# lab:2 begin a\n# lab:1 begin b\n# lab:1 end\n# lab:2 end\n", "f.yaml:2: lab:1 begin b is"},
		"same id twice":       {"# lab:2 begin a\n# lab:2 end\n# lab:2 begin a\n# lab:2 end\n", "f.yaml:3: region a: the id is taken by operator/f.yaml:1"},
		"no id":               {"# lab:2 begin Fetch it\n# lab:2 end\n", "lab:2 begin Fetch is"},
		"unknown lab":         {"# lab:4 begin a\n# lab:4 end\n", "lab:4: the labs are 1 to 3"},
		"before twice":        {"# lab:1 begin a\n# lab:1 before\n# lab:1 before\n# lab:1 end\n", "f.yaml:3: lab:1 before  is"},
		"code after before":   {"# lab:1 begin a\n# lab:1 before\nx: 1\n# lab:1 end\n", "f.yaml:3: after \"before\" every line is a comment"},
		"region after before": {"# lab:1 begin a\n# lab:1 before\n# lab:1 begin b\n# lab:1 end\n# lab:1 end\n", "f.yaml:3: lab:1 begin b is"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := renderText(t, "f.yaml", tc.text, 0); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// A wrong answer may be in a generated file, and may lack one.
func TestRenderAnotherSource(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	source, err := c.Source(0)
	if err != nil {
		t.Fatal(err)
	}
	right := render(t, c, 0)
	want := []string{"main.go", "zz_generated.txt"}
	source["main.go"] = course.File{Data: bytes.Replace(source["main.go"].Data, []byte(`println("?")`), []byte(`println("!")`), 1), Mode: 0o644}
	delete(source, "zz_generated.txt")
	other, err := c.RenderSource(source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, other.Diff(right)); diff != "" || !strings.Contains(string(other["main.go"].Data), `println("!")`) {
		t.Error(diff)
	}
}

func TestTreeRoundTrip(t *testing.T) {
	tree := course.Tree{
		"a":          {Data: []byte("1"), Mode: 0o644},
		"bin/tool":   {Data: []byte("#!"), Mode: 0o755},
		"deep/er/ü ": {Data: nil, Mode: 0o644},
	}
	dir := t.TempDir() + "/new"
	if err := tree.WriteTo(dir); err != nil {
		t.Fatal(err)
	}
	back, err := course.ReadTree(dir)
	if err != nil {
		t.Fatal(err)
	}
	if diff := tree.Diff(back); diff != nil {
		t.Error(diff)
	}
	back["a"], back["new"] = course.File{Data: []byte("2"), Mode: 0o644}, course.File{}
	back["bin/tool"] = course.File{Data: []byte("#!"), Mode: 0o644}
	delete(back, "deep/er/ü ")
	if diff := cmp.Diff([]string{"a", "bin/tool", "deep/er/ü ", "new"}, tree.Diff(back)); diff != "" {
		t.Error(diff)
	}
}
