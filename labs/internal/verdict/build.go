package verdict

import (
	"context"
	"errors"
	"fmt"
	"go/build"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"

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
	// pipeDelay is how long pipes are read that children of a killed command hold open.
	pipeDelay = 2 * time.Second
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
	again, err := c.lacksModules(ctx)
	if err != nil {
		return nil, err
	}
	if again {
		return c.run(ctx)
	}
	return failed, nil
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
		return []string{"list", "-export", "-f={{/* nothing */}}", "-buildvcs=false", c.program}
	}
	return []string{"build", "-buildvcs=false", process.LinkerFlags, "-o", c.out, c.program}
}

func (c compilation) run(ctx context.Context) (*Build, error) {
	limited, cancel := context.WithTimeout(ctx, c.limit)
	defer cancel()
	output, err := c.tool(limited, c.goal()...).CombinedOutput()
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
			What: fmt.Sprintf("your code was not compiled within %s: this machine is too busy, or too small", c.limit), Fix: fix.Doctor,
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

// mainPackage finds the operator's program where scaffolds put it: in cmd (Kubebuilder 4), at the top (before), or in
// cmd/manager (Operator SDK before 1.0); then the only program in cmd. Without one it says why, and what to do about it.
func mainPackage(workspace string) (program, why string) {
	if _, err := os.Stat(filepath.Join(workspace, "go.mod")); err != nil {
		if entries, err := os.ReadDir(workspace); err == nil && len(entries) == 0 {
			return "", fmt.Sprintf("%s is empty: remove it (rmdir %s), and the next `make lab-1` makes a workspace there", workspace, workspace)
		}
		return "", fmt.Sprintf("%s is no workspace: a workspace is a Go module, and there is no go.mod in it. If the lab made it, "+
			"`make undo` or `make reset-1` brings one back; if not, name a folder that does not exist yet: `make lab-1 WORKSPACE=DIR`", workspace)
	}
	if files, _ := filepath.Glob(filepath.Join(workspace, "cmd", "*.go")); len(files) > 0 {
		return "./cmd", "" // whatever is in them: the compiler says what is wrong
	}
	isProgram := func(dir string) bool {
		p, _ := build.ImportDir(filepath.Join(workspace, dir), 0) // the compiler tells of errors
		return p.Name == "main"
	}
	for _, dir := range []string{".", "cmd/manager"} {
		if isProgram(dir) {
			return "./" + dir, ""
		}
	}
	folders, _ := os.ReadDir(filepath.Join(workspace, "cmd"))
	var found []string
	for _, folder := range folders {
		if dir := "cmd/" + folder.Name(); folder.IsDir() && isProgram(dir) {
			found = append(found, dir)
		}
	}
	switch len(found) {
	case 0:
		return "", "there is no program: the lab builds the package main in cmd, in cmd/manager, or at the top of your module"
	case 1:
		return "./" + found[0], ""
	}
	return "", fmt.Sprintf("there are %d programs (%s), and the lab builds one: put your operator's package main into cmd", len(found), strings.Join(found, ", "))
}
