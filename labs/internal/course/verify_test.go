package course_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

const deepCopy = "api/zz_generated.deepcopy.go"

// checkout is the folder of this repository.
func checkout(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// newGenerating has an operator with types whose deepcopy is generated at some stages, and is stale.
func newGenerating(t *testing.T, made string) (root string, generator *course.Verifier) {
	t.Helper()
	root = coursetest.New(t)
	coursetest.Write(t, root, "labs/course.yaml", "generated:\n- path: "+deepCopy+"\n  made: "+made+"\n")
	coursetest.Write(t, root, "operator/"+deepCopy, "package api\n")
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
	return root, newVerifier(t, root)
}

// newVerifier has the controller-gen that this checkout pins.
func newVerifier(t *testing.T, root string) *course.Verifier {
	t.Helper()
	v := &course.Verifier{Course: coursetest.Load(t, root), Generator: filepath.Join(t.TempDir(), "controller-gen"), Log: func(string) {}}
	goBuild(t, "-o="+v.Generator, "sigs.k8s.io/controller-tools/cmd/controller-gen")
	return v
}

// verify returns what is wrong with the checkout as it is now.
func verify(t *testing.T, v *course.Verifier) string {
	t.Helper()
	v.Course = coursetest.Load(t, v.Course.Root)
	problems, err := v.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for _, p := range problems {
		text.WriteString(p.Error() + "\n")
	}
	return text.String()
}

func TestFixGeneratesWhatVerifyWants(t *testing.T) {
	root, v := newGenerating(t, "[0, 2]")
	changed, err := v.Fix(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"labs/_stages/0/" + deepCopy, "operator/" + deepCopy}
	if diff := cmp.Diff(want, changed); diff != "" {
		t.Fatal(diff)
	}
	if problems := verify(t, v); problems != "" {
		t.Error(problems)
	}
	for stage, deep := range []bool{false, false, true, true} {
		text := string(render(t, v.Course, stage)[deepCopy].Data)
		if !strings.Contains(text, "func (in *T) DeepCopyInto") || strings.Contains(text, "Names") != deep {
			t.Errorf("stage %d:\n%s", stage, text)
		}
	}
	problems := ""
	for _, name := range want {
		replace(t, root, name, "*out = *in", "*out = *in // edited")
		problems += name + ": is not what controller-gen makes: make generate\n"
	}
	if diff := cmp.Diff(problems, verify(t, v)); diff != "" {
		t.Error(diff)
	}
}

func TestVerifyNamesStageThatDoesNotCompile(t *testing.T) {
	root := coursetest.New(t)
	coursetest.Write(t, root, "labs/course.yaml", "")
	replace(t, root, "operator/main.go", `// println("?")`, `// println(nobody)`)
	problems := verify(t, newVerifier(t, root))
	if !strings.Contains(problems, "stage 0: go vet:") || !strings.Contains(problems, "undefined: nobody") || strings.Contains(problems, "stage 1") {
		t.Error(problems)
	}
}

// A stage below the first that makes a file does not get it.
func TestRegenerateMakesFilesOfStage(t *testing.T) {
	_, v := newGenerating(t, "[2]")
	for stage, want := range [][]string{nil, nil, {deepCopy}, {deepCopy}} {
		tree, err := v.Regenerate(t.Context(), render(t, v.Course, stage), stage)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, tree.Diff(render(t, v.Course, stage))); diff != "" {
			t.Errorf("stage %d: %s", stage, diff)
		}
	}
}
