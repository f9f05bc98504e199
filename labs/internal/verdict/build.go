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
	"github.com/example/operator-lab/clusters/image"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// pipeDelay is how long to read the pipes of a killed command that its children hold open.
	pipeDelay = 2 * time.Second
	// diagnosisLimit bounds each Go command that finds out why a build failed.
	diagnosisLimit = time.Minute
	// controlModule is a small module that certainly exists: this program requires it.
	controlModule = "golang.org/x/mod@v0.41.0"
)

// imageProgram is the name of the program in an image, at its top, as in the scaffold's Dockerfile.
const imageProgram = "manager"

// ManagerImage is the name under which the nodes of a cluster have the workspace's program.
const ManagerImage = "operator-lab.local/memcached-operator:dev"

// LoadImage builds an image with the workspace's program as /manager, and brings it onto the nodes of a cluster under the name ref. It
// needs no container engine and no registry. What it returns is that of a [compilation].
func LoadImage(ctx context.Context, m *clusters.Manager, cluster, workspace, ref string) (failed *Build, err error) {
	dir, remove, err := newScratch()
	if err != nil {
		return nil, err
	}
	defer remove()
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return nil, err
	}
	program := filepath.Join(dir, imageProgram)
	c := compilation{workspace: workspace, out: program, limit: process.BuildLimit, env: append(env, "GOOS=linux")} // as the nodes run
	if failed, err = c.build(ctx); failed != nil || err != nil {
		return failed, err
	}
	return nil, loadProgram(ctx, m, cluster, program, ref)
}

// loadProgram is LoadImage for a program that is compiled for the nodes.
func loadProgram(ctx context.Context, m *clusters.Manager, cluster, program, ref string) error {
	archive := program + ".tar"
	if err := image.WriteProgram(archive, ref, program); err != nil {
		return err
	}
	return m.Provider().LoadImageArchive(ctx, cluster, archive)
}

// compilation compiles and links the main program of a workspace, and writes nothing into it. A [Build] says why the learner's code does
// not compile. An error is not the learner's fault, and is a [*clusters.Problem] where there is something to fix.
type compilation struct {
	workspace, out string
	unlinked       bool // no check runs the program: it is compiled without the linker, which takes longest, and out is not written
	limit          time.Duration
	env            []string // of the Go command; nil takes that of [process.BuildEnv]
	program        string   // the main package, such as ./cmd
}

// build compiles. When modules are missing, it finds out first whether this machine can download any.
func (c compilation) build(ctx context.Context) (failed *Build, err error) {
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

// tool prepares the Go command in the workspace, with the folder of out for its temporary files.
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
	if c.unlinked { // go list -export compiles, and reports errors in the same words
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
	if full := fullDisk(ctx, ""); full != nil {
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

// fullDisk is the problem of a disk without room for a compilation, nil when all have room. Ask it after the compilation has failed:
// what the Go command removes then is less than a disk needs to have free.
func fullDisk(ctx context.Context, dir string) error {
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
// command cannot even list the imports, because it lacks a module's own go.mod, each direct requirement may be missing. With a vendor
// folder none is missing: the learner has to keep it up to date.
func (c compilation) missingModules(ctx context.Context) (needed []string) {
	data, _ := os.ReadFile(filepath.Join(c.workspace, "go.mod"))
	file, err := modfile.ParseLax("go.mod", data, nil)
	if _, vendored := os.Stat(filepath.Join(c.workspace, "vendor", "modules.txt")); err != nil || vendored == nil {
		return nil // the compiler has told the learner
	}
	ctx, cancel := context.WithTimeout(ctx, diagnosisLimit)
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

// tryNetwork downloads [controlModule], to find out whose fault it is that modules are missing. When that fails, it is the machine's,
// and the error is a [*clusters.Problem]. When it works, the learner requires a module that does not exist.
func (c compilation) tryNetwork(ctx context.Context, needed []string) error {
	dir, err := os.MkdirTemp("", "modules-")
	if err != nil {
		return fmt.Errorf("download modules: %w", err)
	}
	defer os.RemoveAll(dir)
	// Without a go.mod here, Go would take one from a folder above, and anybody may write to /tmp.
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module control\n"), 0o600); err != nil {
		return fmt.Errorf("download modules: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, diagnosisLimit)
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
