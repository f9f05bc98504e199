package generate_test

import (
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/harness/generate"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/workspace/workspacetest"
)

const conditionsCopy = `	if in.Conditions != nil {
		in, out := &in.Conditions, &out.Conditions
		*out = make([]v1.Condition, len(*in))
		for i := range *in {
			(*in)[i].DeepCopyInto(&(*out)[i])
		}
	}
`

func TestDiffCode(t *testing.T) {
	for name, c := range map[string]struct {
		old, new string
		stale    bool
		diff     string // a line of it; "" is none
	}{
		"a licence":           {"package v1alpha1", "/*\nCopyright me\n*/\n\npackage v1alpha1", false, ""},
		"formatting":          {"\tout := new(MemcachedStatus)\n", "\n\n        out := new(MemcachedStatus)\n\n", false, ""},
		"older types":         {conditionsCopy, "", true, "+\tif in.Conditions != nil {"},
		"a field of the past": {"	*out = *in\n	if in.Conditions", "	*out = *in\n	if in.Nodes != nil {\n	}\n	if in.Conditions", true, "-\tif in.Nodes != nil {"},
		"an edit":             {conditionsCopy, "	out.Conditions = in.Conditions\n", false, "-\tout.Conditions = in.Conditions"},
		"a renamed method":    {"MemcachedList) DeepCopyObject()", "MemcachedList) Copy()", true, "+func (in *MemcachedList) DeepCopyObject() runtime.Object {"},
	} {
		t.Run(name, func(t *testing.T) {
			right := coursetest.Read(t, workspacetest.New(t), workspacetest.DeepCopy)
			wrong := coursetest.Read(t, workspacetest.New(t, workspacetest.Replace(workspacetest.DeepCopy, c.old, c.new)), workspacetest.DeepCopy)
			got, err := generate.DiffCode(wrong, right)
			switch {
			case err != nil:
				t.Fatal(err)
			case got == nil && c.diff == "":
			case got == nil || c.diff == "" || got.Stale != c.stale || !strings.Contains(got.Diff, c.diff):
				t.Errorf("DiffCode = %+v; want stale: %v, with %q", got, c.stale, c.diff)
			}
		})
	}
	if _, err := generate.DiffCode("package v1alpha1\nfunc {", "package v1alpha1"); err == nil || !strings.Contains(err.Error(), ":2:") {
		t.Errorf("DiffCode of what is no Go = %v, want an error that names line 2", err)
	}
}
