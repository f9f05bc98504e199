package course_test

import (
	"errors"
	"os"
	"path/filepath"
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

func TestRenderLeavesOneTodoForTheOuterRegion(t *testing.T) {
	want := `package main

// Options are what main takes.
type Options struct {
	// Name is whom to greet.
	Name string

	// TODO(lab 3): Add the field Loud.
}

func main() {
	// TODO(lab 1): Say hello.

	println("?")
}
`
	tree := render(t, coursetest.Load(t, coursetest.New(t)), 0)
	if diff := cmp.Diff(want, string(tree["main.go"].Data)); diff != "" {
		t.Error(diff)
	}
}

func TestRenderKeepsWhatIsKnownAndTheImportsOfIt(t *testing.T) {
	want := `package main

import (
	"fmt"
	"os"
)

// Options are what main takes.
type Options struct {
	// Name is whom to greet.
	Name string

	// TODO(lab 3): Add the field Loud.
}

func main() {
	if len(os.Args) > 1 {
		fmt.Println("hello", os.Args[1])
		return
	}

	fmt.Println("hello")
}
`
	tree := render(t, coursetest.Load(t, coursetest.New(t)), 2)
	if diff := cmp.Diff(want, string(tree["main.go"].Data)); diff != "" {
		t.Error(diff)
	}
}

func TestRenderLastStageHasNoMarkerAndNoTodo(t *testing.T) {
	for name, file := range render(t, coursetest.Load(t, coursetest.New(t)), 3) {
		if text := string(file.Data); strings.Contains(text, "lab:") || strings.Contains(text, "TODO") || strings.Contains(text, "\n\n\n") {
			t.Errorf("%s:\n%s", name, text)
		}
	}
}

func TestRenderUncommentsBefore(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	stage1, stage2 := render(t, c, 1), render(t, c, 2)
	for _, tc := range []struct {
		tree       course.Tree
		file, want string
	}{
		{stage1, "Makefile", "# TODO(lab 2): Let build generate first.\nbuild:\n\tgo build .\n"},
		{stage2, "Makefile", "build: generate\n\tgo build .\n"},
		{stage1, "config/config.yaml", "  a: 1\n\n  # TODO(lab 2): Set b.\n  c: 3\n  d: 4\n"},
		{stage2, "config/config.yaml", "  a: 1\n\n  b: 2\n  d: 4\n"},
	} {
		if got := string(tc.tree[tc.file].Data); !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q lacks %q", tc.file, got, tc.want)
		}
	}
}

func TestRenderKnowsFromWhichLabOnAFileExists(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for stage, want := range map[int][]string{
		0: {"Makefile", "config/config.yaml", "go.mod", "main.go", "zz_generated.txt"},
		2: {"Makefile", "config/config.yaml", "go.mod", "main.go", "zz_generated.txt"},
		3: {"Makefile", "config/config.yaml", "config/made.yaml", "docs/usage.md", "go.mod", "main.go", "zz_generated.txt"},
	} {
		if diff := cmp.Diff(want, render(t, c, stage).Paths()); diff != "" {
			t.Errorf("stage %d: %s", stage, diff)
		}
	}
}

// The generated file goes stale at stage 1, as it does for a learner who
// changes its input and does not know generators yet.
func TestRenderGivesGeneratedFilesOfTheirStage(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for stage, want := range []string{"made of stage 0\n", "made of stage 0\n", "made of stage 3\n", "made of stage 3\n"} {
		if got := string(render(t, c, stage)["zz_generated.txt"].Data); got != want {
			t.Errorf("stage %d: %q", stage, got)
		}
	}
}

func TestRenderRefusesUnknownStages(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	for _, stage := range []int{-1, 4} {
		if _, err := c.Render(stage); err == nil || !strings.Contains(err.Error(), "0 to 3") {
			t.Errorf("stage %d: %v", stage, err)
		}
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
	got, err = renderText(t, "p.go", source, 2)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{`"fmt"`, `appsv1 "k8s.io/api/apps/v1"`, `"example.com/greet/v2"`} {
		if !strings.Contains(got, path) {
			t.Errorf("%s is gone from\n%s", path, got)
		}
	}
}

// A TODO must not become the first line of the next declaration's comment.
func TestRenderKeepsTodoApartFromDeclarations(t *testing.T) {
	got, err := renderText(t, "p.go", `package p

// lab:2 begin kinds Say what it is.

// T is new.
type T int

// lab:2 before
// // T is old.
// type T string
// lab:2 end
`, 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := "package p\n\n// TODO(lab 2): Say what it is.\n\n// T is old.\ntype T string\n"; got != want {
		t.Errorf("%q", got)
	}
}

func TestRenderLeavesNoDoubledEmptyLines(t *testing.T) {
	const source = "a: 1\n\n\n# lab:2 begin b\n\nb: 2\n\n# lab:2 end\n\nc: 3\n\n\nd: 4\n"
	for stage, want := range map[int]string{1: "a: 1\n\nc: 3\n\n\nd: 4\n", 2: "a: 1\n\nb: 2\n\nc: 3\n\n\nd: 4\n"} {
		if got, err := renderText(t, "a.yaml", source, stage); err != nil || got != want {
			t.Errorf("stage %d: %q, %v", stage, got, err)
		}
	}
}

func TestRenderRefusesBrokenRegions(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no end":              {"# lab:1 begin a\n", "operator/f.yaml:1: region a has no \"lab:1 end\""},
		"end without begin":   {"# lab:1 end\n", "f.yaml:1: lab:1 end: no region of lab 1 is open here"},
		"end of another lab":  {"# lab:1 begin a\n# lab:2 end\n", "f.yaml:2: lab:2 end: no region of lab 2"},
		"end of another id":   {"# lab:1 begin a\n# lab:1 end b\n", "f.yaml:2: lab:1 end b: the open region is a"},
		"crossed":             {"# lab:1 begin a\n# lab:2 begin b\n# lab:1 end\n# lab:2 end\n", "f.yaml:3: lab:1 end"},
		"inner before outer":  {"# lab:2 begin a\n# lab:1 begin b\n# lab:1 end\n# lab:2 end\n", "lab 1 inside of lab 2"},
		"same id twice":       {"# lab:2 begin a\n# lab:2 end\n# lab:2 begin a\n# lab:2 end\n", "f.yaml:3: region a: the id is taken by operator/f.yaml:1"},
		"id of another file":  {"# lab:2 begin hello\n# lab:2 end\n", "region hello: the id is taken by"},
		"no id":               {"# lab:2 begin\n# lab:2 end\n", "f.yaml:1: \"\" is not a region's id"},
		"odd id":              {"# lab:2 begin Fetch It\n# lab:2 end\n", "\"Fetch\" is not a region's id"},
		"unknown lab":         {"# lab:4 begin a\n# lab:4 end\n", "lab:4: the labs are 1 to 3"},
		"lab 0":               {"# lab:0 begin a\n# lab:0 end\n", "lab:0: the labs are 1 to 3"},
		"no lab":              {"# lab:N begin a\n", "lab:N: the labs are 1 to 3"},
		"unknown word":        {"# lab:1 start a\n", "f.yaml:1: lab:1 start: a region has begin, before and end"},
		"before outside":      {"# lab:1 before\n", "f.yaml:1: lab:1 before: no region of lab 1"},
		"before twice":        {"# lab:1 begin a\n# lab:1 before\n# lab:1 before\n# lab:1 end\n", "f.yaml:3: region a: a second"},
		"code after before":   {"# lab:1 begin a\n# lab:1 before\nx: 1\n# lab:1 end\n", "f.yaml:3: after \"before\" every line is a comment"},
		"region after before": {"# lab:1 begin a\n# lab:1 before\n# lab:1 begin b\n# lab:1 end\n# lab:1 end\n", "f.yaml:3: region b: no region begins after"},
		"behind code":         {"x: 1 # lab:1 begin a\n", "f.yaml:1: a region's marker fills its line"},
		"foreign comment":     {"// lab:1 begin a\n", "f.yaml:1: a region's marker fills its line and is a comment of this kind of file: # lab:N"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := renderText(t, "f.yaml", tc.text, 0); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestRenderSaysWhichStageIsNotGoAnyMore(t *testing.T) {
	_, err := renderText(t, "p.go", "package p\n\nfunc f() {\n\t// lab:2 begin a\n\tif true {\n\t// lab:2 end\n\t}\n}\n", 1)
	if err == nil || !strings.Contains(err.Error(), "render stage 1: operator/p.go") {
		t.Error(err)
	}
}

// A course with another source renders that one, and leaves the first course as it is.
func TestRenderAnotherSource(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	source, err := c.Source(0)
	if err != nil {
		t.Fatal(err)
	}
	main := source["main.go"]
	main.Data = []byte(strings.Replace(string(main.Data), `println("?")`, `println("!")`, 1))
	source["main.go"] = main
	other, err := c.WithSource(source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"main.go"}, render(t, other, 0).Diff(render(t, c, 0))); diff != "" {
		t.Error(diff)
	}
	if diff := render(t, other, 1).Diff(render(t, c, 1)); diff != nil {
		t.Errorf("stage 1 does not have the line that differs: %v", diff)
	}

	main.Data = []byte(strings.Replace(string(main.Data), "// lab:1 end", "", 1))
	source["main.go"] = main
	if _, err := c.WithSource(source, 0); err == nil || !strings.Contains(err.Error(), "operator/main.go:") {
		t.Errorf("got %v", err)
	}
}

// A wrong answer may be in a generated file, and is then in the version of its stage.
func TestRenderAnotherVersionOfAGeneratedFile(t *testing.T) {
	c := coursetest.Load(t, coursetest.New(t))
	source, err := c.Source(1)
	if err != nil {
		t.Fatal(err)
	}
	made := source["zz_generated.txt"]
	if string(made.Data) != "made of stage 0\n" {
		t.Fatalf("stage 1 has %q", made.Data)
	}
	made.Data = []byte("made by hand\n")
	source["zz_generated.txt"] = made
	other, err := c.WithSource(source, 1)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"zz_generated.txt"}, render(t, other, 1).Diff(render(t, c, 1))); diff != "" {
		t.Error(diff)
	}
}

// A folder of a stranger's may hold a file that takes no place on the disk, and all of the memory.
func TestATreeHasALimit(t *testing.T) {
	dir := t.TempDir()
	large := filepath.Join(dir, "large")
	if err := errors.Join(os.WriteFile(large, nil, 0o600), os.Truncate(large, 1<<30+1)); err != nil {
		t.Fatal(err)
	}
	if _, err := course.ReadTree(dir); err == nil || !strings.Contains(err.Error(), "more than 1024 MiB") {
		t.Errorf("ReadTree = %v", err)
	}
}

func TestTreeGoesToDiskAndBack(t *testing.T) {
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
	back["a"] = course.File{Data: []byte("2"), Mode: 0o644}
	back["bin/tool"] = course.File{Data: []byte("#!"), Mode: 0o644}
	delete(back, "deep/er/ü ")
	back["new"] = course.File{}
	if diff := cmp.Diff([]string{"a", "bin/tool", "deep/er/ü ", "new"}, tree.Diff(back)); diff != "" {
		t.Error(diff)
	}
}
