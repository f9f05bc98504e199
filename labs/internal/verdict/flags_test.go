package verdict

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNoNameInGoModIsAFlag has a go.mod require a module by the name of a flag. The Go command would take it for
// one, and write the sums of the go.mod that it names: to wherever a link in its place leads.
func TestNoNameInGoModIsAFlag(t *testing.T) {
	c := newCompilation(t, newProxy(t), usesLib)
	outside := filepath.Join(t.TempDir(), "outside")
	writeFiles(t, c.workspace, map[string]string{
		"go.mod": "module example.test/mine\n\ngo 1.16\n\nrequire \"-modfile=good.mod\" v1.0.0\n\n" +
			"replace \"-modfile=good.mod\" => example.test/nowhere v1.0.0\n",
		"good.mod": "module example.test/mine\n\ngo 1.26\n\nrequire " + lib.Path + " " + lib.Version + "\n",
	})
	if err := os.Symlink(outside, filepath.Join(c.workspace, "good.sum")); err != nil {
		t.Skip(err)
	}
	build, err := c.judge(t.Context())
	if err != nil || build == nil {
		t.Errorf("%v, %v, want what the Go command says of go.mod", build, err)
	}
	if data, err := os.ReadFile(outside); err == nil {
		t.Errorf("written outside of the workspace: %s", data)
	}
}
