package course_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

// checkout is the folder of this repository.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// buildGenerator builds the controller-gen that the checkout pins.
func buildGenerator(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "controller-gen")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", name, "sigs.k8s.io/controller-tools/cmd/controller-gen")
	cmd.Dir = checkout(t)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return name
}

// newGenerating has an operator with types whose deepcopy is generated at the stages 0 and 2.
func newGenerating(t *testing.T) (root string) {
	t.Helper()
	root = coursetest.New(t)
	coursetest.Write(t, root, "labs/course.yaml", "schema: 1\ngenerated:\n- path: api/zz_generated.deepcopy.go\n  made: [0, 2]\n")
	coursetest.Write(t, root, "operator/api/types.go", `// Package api has types.
// +kubebuilder:object:generate=true
package api

// T is copied.
type T struct {
	// lab:1 begin names Add the names.

	// Names are shared unless they are copied.
	Names []string

	// lab:1 end
}
`)
	return root
}

func verify(t *testing.T, root, generator string) []string {
	t.Helper()
	problems, err := (&course.Verifier{Course: coursetest.Load(t, root), Generator: generator}).Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range problems {
		lines = append(lines, p.Error())
	}
	return lines
}

func TestFixGeneratesWhatVerifyWants(t *testing.T) {
	generator, root := buildGenerator(t), newGenerating(t)
	coursetest.Write(t, root, "operator/api/zz_generated.deepcopy.go", "package api\n") // stale
	changed, err := (&course.Verifier{Course: coursetest.Load(t, root), Generator: generator}).Fix(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"labs/_stages/0/api/zz_generated.deepcopy.go", "operator/api/zz_generated.deepcopy.go"}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Fatal(diff)
	}
	c := coursetest.Load(t, root)
	for stage, deep := range []bool{false, false, true, true} {
		text := string(render(t, c, stage)["api/zz_generated.deepcopy.go"].Data)
		if !strings.Contains(text, "func (in *T) DeepCopyInto") || strings.Contains(text, "Names") != deep {
			t.Errorf("stage %d:\n%s", stage, text)
		}
	}
	if problems := verify(t, root, generator); problems != nil {
		t.Errorf("%q", problems)
	}

	// What no longer is what the generator makes is named with the stages that have it.
	replace(t, root, "labs/_stages/0/api/zz_generated.deepcopy.go", "*out = *in", "*out = *in // edited")
	replace(t, root, "operator/api/zz_generated.deepcopy.go", "*out = *in", "*out = *in // edited")
	problems := strings.Join(verify(t, root, generator), "\n")
	for _, stage := range []string{"0", "2", "3"} {
		if want := "stage " + stage + ": api/zz_generated.deepcopy.go is not what controller-gen makes of it"; !strings.Contains(problems, want) {
			t.Errorf("%s lacks %q", problems, want)
		}
	}
	if strings.Contains(problems, "stage 1") {
		t.Errorf("stage 1 is meant to be stale: %s", problems)
	}
}

func TestVerifyNamesTheStageThatDoesNotCompile(t *testing.T) {
	generator, root := buildGenerator(t), coursetest.New(t)
	coursetest.Write(t, root, "labs/course.yaml", "schema: 1\n")
	replace(t, root, "operator/main.go", `// println("?")`, `// println(nobody)`)
	problems := verify(t, root, generator)
	if len(problems) != 1 || !strings.Contains(problems[0], "stage 0: go vet:") || !strings.Contains(problems[0], "undefined: nobody") {
		t.Errorf("%q", problems)
	}
}

func TestVerifyFindsMarkersThatHideComments(t *testing.T) {
	generator, root := buildGenerator(t), newGenerating(t)
	replace(t, root, "operator/api/types.go", "// T is copied.",
		"// +kubebuilder:object:generate=false\n\n// lab:1 begin hides\n// lab:1 end\n\n// U is not copied.\ntype U struct{}\n\n// T is copied.")
	if _, err := (&course.Verifier{Course: coursetest.Load(t, root), Generator: generator}).Fix(t.Context()); err != nil {
		t.Fatal(err)
	}
	problems := strings.Join(verify(t, root, generator), "\n")
	if !strings.Contains(problems, "api/zz_generated.deepcopy.go differs when it is made of the annotated operator") {
		t.Errorf("%s", problems)
	}
}

// Only what a stage has is made: a stage below the first generated file gets none.
func TestRegenerateMakesWhatTheStageHas(t *testing.T) {
	generator, root := buildGenerator(t), newGenerating(t)
	replace(t, root, "labs/course.yaml", "made: [0, 2]", "made: [2]")
	coursetest.Write(t, root, "operator/api/zz_generated.deepcopy.go", "package api\n") // stale
	c := coursetest.Load(t, root)
	for stage, want := range [][]string{nil, nil, {"api/zz_generated.deepcopy.go"}, {"api/zz_generated.deepcopy.go"}} {
		tree, err := (&course.Verifier{Course: c, Generator: generator}).Regenerate(t.Context(), stage)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tree.Diff(render(t, c, stage))); diff != "" {
			t.Errorf("stage %d: %s", stage, diff)
		}
	}
}
