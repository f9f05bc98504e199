package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/module"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	// maxBuildLines is how many lines of a compiler's complaint a person reads, and maxBuildLine how much of one, in characters: a
	// type can be as long as the code.
	maxBuildLines, maxBuildLine = 20, 500
)

// BuildManager compiles and links the workspace's ./cmd to out, writing nothing into the workspace. A Build says
// why the learner's code does not compile; an error is not the learner's fault, and a
// [*clusters.Problem] where there is something to fix.
func BuildManager(ctx context.Context, workspace, out string) (*Build, error) {
	return compilation{workspace: workspace, out: out}.trusted(ctx)
}

// trusted is the compilation as the learner's own Go command does it.
func (c compilation) trusted(ctx context.Context) (*Build, error) {
	if why := noModule(c.workspace); why != "" {
		return &Build{Output: why}, nil
	}
	var err error
	if c.env, err = process.BuildEnv(ctx); err != nil {
		return nil, err
	}
	c.limit, c.known, c.mod = process.BuildLimit, ingredient(), "readonly"
	return c.judge(ctx)
}

// judge compiles, and asks the machine before it tells the learner.
func (c compilation) judge(ctx context.Context) (*Build, error) {
	build, err := c.run(ctx)
	if build == nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(c.workspace, "vendor", "modules.txt")); err == nil && c.offline() {
		c.mod = "vendor"
		return c.run(ctx)
	}
	// A module may be missing because the learner asks for one that does not exist, or for want of a
	// network.
	fetched, err := c.fetch(ctx)
	if err != nil {
		return nil, err
	}
	if fetched {
		return c.run(ctx)
	}
	return build, nil
}

// compilation is one of the learner's code.
type compilation struct {
	workspace, out string
	unlinked       bool // nobody will run it: out stays empty, and what takes longest is spared
	env            []string
	limit          time.Duration
	known          module.Version // one that certainly exists
	mod            string         // where modules come from: readonly, or vendor
}

// pipeDelay is how long pipes are read that children of a killed command hold open.
const pipeDelay = 2 * time.Second

// command prepares the Go command in the workspace, with env added to its environment.
func (c compilation) command(ctx context.Context, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = c.workspace, append(slices.Clone(c.env), env...)
	cmd.WaitDelay = pipeDelay
	return cmd
}

// tool prepares the Go command for work on the workspace, where it may write to the folder of what is made.
func (c compilation) tool(ctx context.Context, args ...string) *exec.Cmd {
	cmd := process.Tool(ctx, c.workspace, filepath.Dir(c.out), c.env, "go", args...)
	cmd.WaitDelay = pipeDelay
	return cmd
}

// goal are the arguments of the Go command. It has no word for compiling a program without linking it, but compiles what
// it is asked to list the compiled files of, and complains in the same words.
func (c compilation) goal() []string {
	if c.unlinked {
		return []string{"list", "-export", "-f={{/* nothing */}}", "-buildvcs=false", "-mod=" + c.mod, "./cmd"}
	}
	return []string{"build", "-buildvcs=false", "-mod=" + c.mod, process.LinkerFlags, "-o", c.out, "./cmd"}
}

func (c compilation) run(ctx context.Context) (*Build, error) {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	cmd := c.tool(limited, c.goal()...)
	output, err := cmd.CombinedOutput()
	switch {
	case err == nil && c.unlinked:
		return nil, nil
	case err == nil:
		return nil, os.Chmod(c.out, 0o755) // whatever the umask: another user runs it
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	if lacking := shortage(ctx, ""); lacking != nil {
		return nil, lacking
	}
	var exited *exec.ExitError
	switch {
	case limited.Err() != nil:
		return nil, &clusters.Problem{
			What: fmt.Sprintf("your code was not compiled within %s: this machine is too busy, or too small", c.limit),
			Fix:  "make doctor",
		}
	case !errors.As(err, &exited):
		return nil, fmt.Errorf("build the manager: %w", err)
	case killedTool.Match(output):
		return nil, &clusters.Problem{
			What: "something killed the compiler or the linker, as the kernel does when memory runs out", Fix: "make down, then close other programs",
		}
	}
	return &Build{Output: c.readable(string(output))}, nil
}

// killedTool is how the go command reports a tool that something killed. No code of a learner makes a tool kill itself.
var killedTool = regexp.MustCompile(`(?m)/(compile|asm|link): signal: killed$`)

// shortage is a disk that has no room for a compilation, nil when all have. Of what a failed compilation has written, the
// go command removes less than a disk needs to have free.
func shortage(ctx context.Context, dir string) error {
	return doctor.Problem(doctor.Disks(ctx, doctor.Options{Dir: dir, Commands: fix.Commands()}))
}

// readable is the beginning of what the compiler said, with paths as the learner knows them.
func (c compilation) readable(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	if len(lines) > maxBuildLines {
		lines = append(lines[:maxBuildLines], fmt.Sprintf("… and %d more lines", len(lines)-maxBuildLines))
	}
	for i, line := range lines {
		if len(line) > maxBuildLine {
			lines[i] = plain.Short(line, maxBuildLine)
		}
	}
	return strings.ReplaceAll(strings.Join(lines, "\n"), c.workspace+string(filepath.Separator), "")
}

// noModule says what keeps a folder from being a Go module, and what to do about it; "" when it is one.
func noModule(workspace string) string {
	if info, err := os.Lstat(filepath.Join(workspace, "go.mod")); err == nil {
		if !info.Mode().IsRegular() {
			return "go.mod is a link or a folder: put the file itself in its place" // Go would quote what a link leads to
		}
		return ""
	}
	if entries, err := os.ReadDir(workspace); err == nil && len(entries) == 0 {
		return fmt.Sprintf("%s is empty: remove it (rmdir %s), and the next `make lab-1` makes a workspace there", workspace, workspace)
	}
	return fmt.Sprintf("there is no go.mod in %s, so it is no workspace. If lab made it, `make undo` or `make reset-1` brings one back; if not, name a new folder: `make lab-1 WORKSPACE=DIR`", workspace)
}
