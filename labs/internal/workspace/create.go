package workspace

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// tasks are tasks for VS Code. CHECKOUT stands for the folder of the checkout.
//
//go:embed tasks.json
var tasks string

// create makes the workspace with the files of a stage, a repository with one commit of them, and tasks for VS Code, which may name a
// folder of this machine and are not part of the commit. It appears whole or not at all.
func create(ctx context.Context, c *course.Course, dir string, stage int) error {
	tree, err := c.Render(stage)
	if err != nil {
		return err
	}
	parent := filepath.Dir(dir)
	tmp := ""
	if err = os.MkdirAll(parent, 0o755); err == nil {
		tmp, err = os.MkdirTemp(parent, ".lab-workspace-")
	}
	if err != nil {
		return refuse("create the workspace: %w", err)
	}
	defer os.RemoveAll(tmp) // after the rename it is not there
	if err := errors.Join(os.Chmod(tmp, 0o755), tree.WriteTo(tmp)); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main", "--template="},
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--message", fmt.Sprintf("Start of lab %d", stage+1)},
	} {
		if err := git(ctx, tmp, args...); err != nil {
			return err
		}
	}
	// The folder of its saves tells [mayChange] that the lab made the workspace.
	if err := errors.Join(writeTasks(Real(c.Root), dir, tmp), os.MkdirAll(savesOf(c, dir).dir, 0o700), os.Rename(tmp, dir)); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	return nil
}

// writeTasks writes the tasks of the workspace dir into the folder that will be renamed to it.
func writeTasks(checkout, dir, tmp string) error {
	if up, err := filepath.Rel(dir, checkout); err == nil && Contains(checkout, dir) {
		checkout = "${workspaceFolder}/" + filepath.ToSlash(up)
	}
	quoted, _ := json.Marshal(checkout) // a string never fails
	file := course.File{Data: []byte(strings.ReplaceAll(tasks, `"CHECKOUT"`, string(quoted))), Mode: 0o644}
	return course.Tree{".vscode/tasks.json": file}.WriteTo(tmp)
}

// git runs git in a repository that is being made, without settings of the user, the system or the environment.
func git(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
		"GIT_AUTHOR_NAME=Operator Lab", "GIT_AUTHOR_EMAIL=lab@operator-lab.invalid",
		"GIT_COMMITTER_NAME=Operator Lab", "GIT_COMMITTER_EMAIL=lab@operator-lab.invalid",
	}
	said, err := cmd.CombinedOutput()
	switch {
	case err == nil || ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return errors.New("git is missing, and the workspace is a repository: install git")
	}
	return fmt.Errorf("git %s in %s: %w: %s", args[0], dir, err, plain.Line(string(said)))
}
