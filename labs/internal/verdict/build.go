package verdict

import (
	"context"
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// pipeDelay is how long pipes are read that children of a killed command hold open.
	pipeDelay = 2 * time.Second
	// questionLimit bounds the question what is imported, and the download of one small module.
	questionLimit = time.Minute
	// controlModule certainly exists: it is small, and a part of this program.
	controlModule = "golang.org/x/mod@v0.41.0"
)

// BuildManager compiles and links the main program of the workspace to out, writing nothing into the workspace. A Build says
// why the learner's code does not compile; an error is not the learner's fault, and a [*clusters.Problem] where there is
// something to fix.
func BuildManager(ctx context.Context, workspace, out string) (*Build, error) {
	return compilation{workspace: workspace, out: out, limit: process.BuildLimit}.judge(ctx)
}

// compilation is one of the learner's code.
type compilation struct {
	workspace, out string
	unlinked       bool // nobody will run it: out stays empty, and what takes longest is spared
	limit          time.Duration
	env            []string // of the Go command; nil takes that of [process.BuildEnv]
	program        string   // the main package, such as ./cmd
}

// judge compiles, and asks the machine before it tells the learner.
func (c compilation) judge(ctx context.Context) (failed *Build, err error) {
	if c.env == nil {
		if c.env, err = process.BuildEnv(ctx); err != nil {
			return nil, err
		}
	}
	var why string
	if c.program, why = mainPackage(c.workspace); why != "" {
		return &Build{Output: why}, nil
	}
	if failed, err = c.run(ctx); failed == nil {
		return nil, err
	}
	if needed := c.missingModules(ctx); len(needed) > 0 && ctx.Err() == nil {
		if err := c.tryNetwork(ctx, needed); err != nil {
			return nil, err
		}
		return c.run(ctx) // the network may have been away for a moment
	}
	return failed, ctx.Err()
}

// tool prepares the Go command for work on the workspace, where it may write to the folder of what is made.
func (c compilation) tool(ctx context.Context, args ...string) *exec.Cmd {
	cmd := process.Tool(ctx, c.workspace, filepath.Dir(c.out), c.env, "go", args...)
	cmd.WaitDelay = pipeDelay
	return cmd
}

// killedTool is how the go command reports a tool that something killed. No code of a learner makes a tool kill itself.
var killedTool = regexp.MustCompile(`(?m)/(compile|asm|link): signal: killed$`)

func (c compilation) run(ctx context.Context) (*Build, error) {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	args := []string{"build", "-buildvcs=false", process.LinkerFlags, "-o", c.out, c.program}
	if c.unlinked { // go list compiles what it is asked to list the compiled files of, and complains in the same words
		args = []string{"list", "-export", "-f={{/* nothing */}}", "-buildvcs=false", c.program}
	}
	output, err := c.tool(limited, args...).CombinedOutput()
	switch {
	case err == nil && c.unlinked:
		return nil, nil
	case err == nil:
		return nil, os.Chmod(c.out, 0o755) // whatever the umask: another user runs it
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if full := shortage(ctx, ""); full != nil {
		return nil, full
	}
	var exited *exec.ExitError
	switch {
	case limited.Err() != nil:
		return nil, &clusters.Problem{
			What: fmt.Sprintf("your code was not compiled within %s: this machine is too busy, or too small", c.limit), Fix: fix.Doctor,
		}
	case !errors.As(err, &exited):
		return nil, fmt.Errorf("build the manager: %w", err)
	case killedTool.Match(output):
		return nil, &clusters.Problem{
			What: "something killed the compiler or the linker, as the kernel does when memory runs out", Fix: "make down, then close other programs",
		}
	}
	return &Build{Output: strings.ReplaceAll(strings.TrimSpace(string(output)), c.workspace+string(filepath.Separator), "")}, nil
}

// shortage is a disk that has no room for a compilation, nil when all have. Of what a failed compilation has written, the
// go command removes less than a disk needs to have free.
func shortage(ctx context.Context, dir string) error {
	return doctor.Problem(doctor.Disks(ctx, doctor.Options{Dir: dir, Commands: fix.Commands()}))
}

// mainPackage finds the operator's program where scaffolds put it: in cmd (Kubebuilder 4), in cmd/manager (Operator SDK before 1.0),
// or at the top; then the only one in a folder of cmd. Without one it says why, and what to do about it.
func mainPackage(workspace string) (program, why string) {
	if _, err := os.Stat(filepath.Join(workspace, "go.mod")); err != nil {
		return "", fmt.Sprintf("%s is no workspace: there is no go.mod in it. If it is empty, remove it: the next `make lab-1` makes a workspace there. "+
			"If the lab made it, `make undo` or `make reset-1` brings one back. If not, name a new folder: `make lab-1 WORKSPACE=DIR`", workspace)
	}
	if files, _ := filepath.Glob(filepath.Join(workspace, "cmd", "*.go")); len(files) > 0 {
		return "./cmd", "" // whatever is in them: the compiler says what is wrong
	}
	folders, _ := fs.Glob(os.DirFS(workspace), "cmd/*")
	found := slices.DeleteFunc(append([]string{"cmd/manager", "."}, folders...), func(dir string) bool {
		p, _ := build.ImportDir(filepath.Join(workspace, dir), 0) // the compiler tells of errors
		return p.Name != "main"
	})
	switch {
	case len(found) == 0:
		return "", "there is no program: the lab builds the package main in cmd, in cmd/manager, or at the top of your module"
	case len(found) > 1 && found[0] != "cmd/manager" && found[0] != ".":
		return "", "the lab builds one program, and there are several: put your operator's package main into cmd. They are in " + strings.Join(found, ", ")
	}
	return "./" + found[0], ""
}

// missingModules are the modules of go.mod that the program imports packages of, and that are not on this machine. When the Go
// command cannot even tell what is imported, for want of a module's own go.mod, all may be missing. A learner keeps a folder vendor
// up to date: of one, nothing is missing.
func (c compilation) missingModules(ctx context.Context) (needed []string) {
	data, _ := os.ReadFile(filepath.Join(c.workspace, "go.mod"))
	file, err := modfile.ParseLax("go.mod", data, nil)
	if _, vendored := os.Stat(filepath.Join(c.workspace, "vendor", "modules.txt")); err != nil || vendored == nil {
		return nil // the compiler has told the learner
	}
	ctx, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	cmd := c.tool(ctx, "list", "-e", "-deps", "-f={{if not .Dir}}{{.ImportPath}}{{end}}", c.program)
	cmd.Env = append(cmd.Env, "GOPROXY=off")
	out, unknown := cmd.Output()
	unresolved := strings.Fields(string(out))
	for _, r := range file.Require {
		of := func(pkg string) bool { return strings.HasPrefix(pkg+"/", r.Mod.Path+"/") }
		if unknown != nil && !r.Indirect || slices.ContainsFunc(unresolved, of) {
			needed = append(needed, r.Mod.Path)
		}
	}
	return needed
}

// tryNetwork finds out whose fault it is that modules are missing: it is a [*clusters.Problem] of a machine that cannot download a
// module that certainly exists. On one that can, the learner asks for what does not exist.
func (c compilation) tryNetwork(ctx context.Context, needed []string) error {
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return fmt.Errorf("download modules: %w", err)
	}
	defer os.RemoveAll(dir)
	// A module of ours: Go looks for one in the folders above, too, and one of them is everybody's.
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module control\n"), 0o600); err != nil {
		return fmt.Errorf("download modules: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, questionLimit)
	defer cancel()
	cmd := c.tool(limited, "mod", "download", controlModule)
	cmd.Dir = dir
	cmd.Env = append(cmd.Env, "GOMODCACHE="+filepath.Join(dir, "cache"), "GOFLAGS=-modcacherw")
	said, err := cmd.CombinedOutput()
	if err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	return &clusters.Problem{
		What: fmt.Sprintf("your code needs Go modules that this machine neither has nor can download (%s): %s",
			strings.Join(needed, ", "), plain.Line(string(said))),
		Fix: fmt.Sprintf("go -C %s mod download, once the network is back (docs/troubleshooting.md, the network)", c.workspace),
	}
}
