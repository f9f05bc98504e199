package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// create makes the workspace with the files of a stage and a repository with
// one commit of them. It appears whole or not at all.
func create(ctx context.Context, c *course.Course, p place, stage int) (err error) {
	if err := p.outsideCourse(c.Root); err != nil {
		return err
	}
	tree, err := c.Render(stage)
	if err != nil {
		return err
	}
	parent := filepath.Dir(p.real)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return exit.Usage("create the workspace: %w", err)
	}
	tmp, err := os.MkdirTemp(parent, ".lab-workspace-")
	if err != nil {
		return exit.Usage("create the workspace: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.RemoveAll(tmp)
		}
	}()
	if err := os.Chmod(tmp, 0o755); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	if err := fill(ctx, tmp, tree, stage); err != nil {
		return err
	}
	if err := os.MkdirAll(savesOf(c, p).dir, 0o700); err != nil { // see [place.mayChange]
		return fmt.Errorf("create the workspace: %w", err)
	}
	if err := os.Rename(tmp, p.real); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	return nil
}

// fill writes a stage into a folder, and makes a repository of it.
func fill(ctx context.Context, dir string, tree course.Tree, stage int) error {
	if err := tree.WriteTo(dir); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "--template="},
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--message", fmt.Sprintf("Start of lab %d", stage+1)},
	} {
		if err := git(ctx, dir, args...); err != nil {
			return err
		}
	}
	return nil
}

// Starter returns the workspace that Ensure creates, the repository in .git
// included, for those who write it elsewhere: what is unpacked from it is a
// workspace that Solve, Reset and Restore take.
func Starter(ctx context.Context, c *course.Course) (course.Tree, error) {
	tree, err := c.Render(0)
	if err != nil {
		return nil, err
	}
	tmp, err := os.MkdirTemp("", "lab-workspace-")
	if err != nil {
		return nil, fmt.Errorf("make a workspace to hand out: %w", err)
	}
	defer os.RemoveAll(tmp)
	if err := fill(ctx, tmp, tree, 0); err != nil {
		return nil, err
	}
	repository, err := course.ReadTree(filepath.Join(tmp, ".git"))
	if err != nil {
		return nil, fmt.Errorf("make a workspace to hand out: %w", err)
	}
	for name, file := range repository {
		tree[".git/"+name] = file
	}
	return tree, nil
}

// git runs git on a repository that is being made: no setting of the user, the system or the environment reaches it.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = []string{
		"GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Operator Lab", "GIT_AUTHOR_EMAIL=lab@operator-lab.invalid",
		"GIT_COMMITTER_NAME=Operator Lab", "GIT_COMMITTER_EMAIL=lab@operator-lab.invalid",
	}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "GIT_") && !strings.HasPrefix(entry, "LC_ALL=") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	said, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return exit.Environment(errors.New("git is missing, and the workspace is a repository: install git"))
	}
	return fmt.Errorf("git %s in %s: %w: %s", args[0], dir, err, plain.Line(string(said)))
}
