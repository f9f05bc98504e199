package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	// listLimit bounds the question what is imported. It takes a second.
	listLimit = time.Minute
	// controlLimit bounds the download of one small module.
	controlLimit = time.Minute
	// controlModule certainly exists: it is small, and a part of this program.
	controlModule = "golang.org/x/mod@v0.41.0"
)

// lacksModules asks whether a compilation failed because modules could not be downloaded. If so, it finds out whose fault
// that is: it is a [*clusters.Problem] of a machine that cannot download a module that certainly exists. On one that can,
// a network may have been away for a moment, so the compilation is worth another try; if that fails as well, the learner
// asks for what does not exist.
func (c compilation) lacksModules(ctx context.Context) (again bool, err error) {
	needed := c.missing(ctx)
	if len(needed) == 0 || ctx.Err() != nil {
		return false, ctx.Err()
	}
	if c.setting("GOPROXY") == "off" { // as in a container for grading
		return false, &clusters.Problem{
			What: "the code needs Go modules that are not here, and nothing may be downloaded (GOPROXY=off): " + strings.Join(needed, ", "),
			Fix:  "GOMODCACHE=" + c.setting("GOMODCACHE") + " go mod download MODULE@VERSION for those that you know",
		}
	}
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return false, fmt.Errorf("download modules: %w", err)
	}
	defer os.RemoveAll(dir)
	// A module of ours: Go looks for one in the folders above, too, and one of them is everybody's.
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module control\n"), 0o600); err != nil {
		return false, fmt.Errorf("download modules: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, controlLimit)
	defer cancel()
	cmd := c.tool(limited, "mod", "download", controlModule)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "GOMODCACHE="+filepath.Join(dir, "cache"), "GOFLAGS=-modcacherw")
	said, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return true, nil
	case ctx.Err() != nil:
		return false, ctx.Err()
	case limited.Err() == nil && !errors.As(err, &exited):
		return false, fmt.Errorf("download modules: %w", err)
	}
	return false, &clusters.Problem{
		What: fmt.Sprintf("your code needs Go modules that this machine neither has nor can download (%s): %s",
			strings.Join(needed, ", "), plain.Line(string(said))),
		Fix: fmt.Sprintf("go -C %s mod download, once the network is back (docs/troubleshooting.md, the network)", c.workspace),
	}
}

// setting is a setting of the Go command, "" when it is not known.
func (c compilation) setting(name string) string {
	found := ""
	for _, entry := range c.env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value // the last one counts
		}
	}
	return found
}

// missing are the modules of go.mod that the program imports packages of, and that are not on this machine. When the Go
// command cannot even tell what is imported, for want of a module's own go.mod, all may be missing. Of a folder vendor
// nothing is missing: whoever has one keeps it up to date.
func (c compilation) missing(ctx context.Context) (needed []string) {
	data, err := os.ReadFile(filepath.Join(c.workspace, "go.mod"))
	if err != nil {
		return nil
	}
	file, err := modfile.ParseLax("go.mod", data, nil)
	if _, vendored := os.Stat(filepath.Join(c.workspace, "vendor", "modules.txt")); err != nil || vendored == nil {
		return nil // the compiler has told the learner
	}
	unresolved, known := c.unresolved(ctx)
	for _, r := range file.Require {
		of := func(pkg string) bool { return strings.HasPrefix(pkg+"/", r.Mod.Path+"/") }
		if !known && !r.Indirect || slices.ContainsFunc(unresolved, of) {
			needed = append(needed, r.Mod.Path)
		}
	}
	return needed
}

// unresolved are the imports of the program, its own and those of others, that nothing on this machine provides. known is
// false when the Go command cannot tell what is imported.
func (c compilation) unresolved(ctx context.Context) (imports []string, known bool) {
	ctx, cancel := context.WithTimeout(ctx, listLimit)
	defer cancel()
	cmd := c.tool(ctx, "list", "-e", "-deps", "-f={{if not .Dir}}{{.ImportPath}}{{end}}", c.program)
	cmd.Env = append(cmd.Env, "GOPROXY=off")
	out, err := cmd.Output()
	return strings.Fields(string(out)), err == nil
}
