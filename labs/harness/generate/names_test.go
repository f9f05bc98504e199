package generate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

// controller-gen makes the name of a file of the group and the plural, and takes a folder's name for several packages.
func TestNoNameInTheModuleLeadsOutOfTheCopy(t *testing.T) {
	up := strings.Repeat("../", 30)
	for name, edit := range map[string]func(to string) workspacetest.Edit{
		"a group": func(to string) workspacetest.Edit {
			return workspacetest.Replace(workspacetest.Types, "+groupName=cache.example.com", "+groupName="+up+to)
		},
		"a plural": func(to string) workspacetest.Edit {
			return workspacetest.Replace(workspacetest.Types, "+kubebuilder:resource:shortName=mc", `+kubebuilder:resource:shortName=mc,path="/`+up+to+`"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			workspace := workspacetest.New(t, edit(filepath.Join(out, "x")))
			_, _ = generator(t, workspace).CustomResources(t.Context())
			if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
				t.Errorf("written elsewhere: %v, %v", entries, err)
			}
		})
	}
	t.Run("a folder", func(t *testing.T) {
		const types = "// Package v1 has types.\n// +kubebuilder:object:generate=true\n// +groupName=a.example.com\npackage v1\n\ntype T struct{ A []string }\n"
		workspace := workspacetest.New(t,
			workspacetest.Write("go.mod", "module example.com/x\n\ngo 1.25\n\nrequire example.com/evil v0.0.0\n\nreplace example.com/evil => ./evil\n"),
			workspacetest.Write("evil/go.mod", "module example.com/evil\n\ngo 1.25\n"), workspacetest.Write("evil/v1/a.go", types),
			workspacetest.Write("api/v1alpha1;example.com/evil/v1/a.go", types))
		_, _ = generator(t, workspace).DeepCopy(t.Context())
		if _, err := os.Lstat(filepath.Join(workspace, "evil/v1/zz_generated.deepcopy.go")); !os.IsNotExist(err) {
			t.Error("written into another module")
		}
	})
}
