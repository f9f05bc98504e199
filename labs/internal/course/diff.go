package course

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/example/operator-lab/labs/internal/plain"
)

// written says whether a learner writes the file, or files in the folder: neither the scaffold nor a generator makes them, and no
// pattern "never" of course.yaml matches them.
func (c *Course) written(name string, dir bool) bool {
	top, _, below := strings.Cut(name, "/")
	return slices.Contains([]string{"api", "cmd", "config", "internal"}, top) &&
		(dir || below && !slices.ContainsFunc(c.config.Generated, func(g generated) bool { return g.Path == name }) && !matchesAny(c.config.Never, name))
}

// Diff returns what `git diff` says of a workspace (-) and the solution of a lab (+), "" when they do not differ. Only what
// people write is compared: no generated files, no tests, no files that only the workspace has.
func (c *Course) Diff(ctx context.Context, workspace string, lab int) (string, error) {
	ours, err := c.Render(lab)
	if err != nil {
		return "", err
	}
	yours, err := ReadTree(workspace, func(path string, d fs.DirEntry) bool { return !c.written(path, d.IsDir()) })
	if err != nil {
		return "", err
	}
	maps.DeleteFunc(ours, func(name string, _ File) bool { return !c.written(name, false) })
	dir, err := os.MkdirTemp("", "lab-diff-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	if err := errors.Join(yours.WriteTo(filepath.Join(dir, "yours")), ours.WriteTo(filepath.Join(dir, "ours"))); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "git", "diff", "--no-index", "--diff-filter=d", "--no-prefix", "--no-renames", "--no-ext-diff",
		"--no-textconv", "--no-color", "yours", "ours")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	diff, err := cmd.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) { // 1: they differ
		return "", fmt.Errorf("git diff: %w", err)
	}
	return plain.Text(string(diff)), nil
}
