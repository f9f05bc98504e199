// Package workspace keeps the folder in which the learner works: it creates
// it, brings it to a stage of the course, and brings the learner's own work
// back.
//
// It never loses what a learner wrote: before it changes anything, it saves all
// files in .lab/saves of the checkout. Nothing in a repository is read or
// changed, and no program runs: a workspace may come from a stranger. What is
// left alone need not be saved: everything called .git, and at the top bin/
// (what a build leaves) and the folders of editors.
//
// Two commands must not change a workspace at once; the caller sees to that.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// Change tells what a command did to a workspace.
type Change struct {
	// Created says that the workspace did not exist before.
	Created bool
	// Paths are the files that were written or removed, sorted; none when the
	// workspace was already what it should be.
	Paths []string
	// Saved is the number of the save of the state before, 0 when there was nothing to save.
	Saved int
	// Removed is how many of the oldest saves went, because all saves of a workspace have at most 1 GiB.
	Removed int
	// Restored is the save that Restore brought back.
	Restored Save
}

// Possible refuses a dir that Ensure would refuse, and creates nothing.
func Possible(c *course.Course, dir string) error {
	p, err := locate(c.Root, dir)
	if err != nil || p.exists {
		return err
	}
	return p.outsideCourse(c.Root)
}

// Ensure creates the workspace dir with the starter of lab 1 if it does not
// exist, and says whether it did. A folder that exists is left as it is,
// whatever it holds: its content is for the checks to judge. What can be
// nobody's workspace (see locate) is a usage error, with exit code 2.
func Ensure(ctx context.Context, c *course.Course, dir string) (created bool, err error) {
	p, err := locate(c.Root, dir)
	if err != nil || p.exists {
		return false, err
	}
	err = create(ctx, c, p, 0)
	return err == nil, err
}

// Solve brings the workspace to the solution of a lab: the stage of its
// number.
func Solve(ctx context.Context, c *course.Course, dir string, lab int) (Change, error) {
	return bring(ctx, c, dir, lab, lab, fmt.Sprintf("solve %d", lab))
}

// Reset brings the workspace to the starter of a lab: the stage before it.
func Reset(ctx context.Context, c *course.Course, dir string, lab int) (Change, error) {
	return bring(ctx, c, dir, lab, lab-1, fmt.Sprintf("reset %d", lab))
}

func bring(ctx context.Context, c *course.Course, dir string, lab, stage int, command string) (Change, error) {
	if _, err := c.Lab(lab); err != nil {
		return Change{}, exit.Usage("%w", err)
	}
	p, err := locate(c.Root, dir)
	if err != nil {
		return Change{}, err
	}
	if !p.exists {
		return Change{Created: true}, create(ctx, c, p, stage)
	}
	want, err := c.Render(stage)
	if err != nil {
		return Change{}, err
	}
	return become(ctx, c, p, want, command)
}

// Restore brings back the save of the given number; "" means the latest, which is
// what the last command that changed the workspace replaced. It saves what is
// there now: a second Restore of the latest takes the first one back.
func Restore(ctx context.Context, c *course.Course, dir, number string) (Change, error) {
	p, err := locate(c.Root, dir)
	if err != nil {
		return Change{}, err
	}
	save, err := savesOf(c, p).find(number)
	if err != nil {
		return Change{}, err
	}
	want, err := course.ReadTree(save.dir)
	if err != nil {
		return Change{}, err
	}
	if !p.exists {
		return Change{Created: true, Paths: want.Paths(), Restored: save}, want.WriteTo(p.real)
	}
	change, err := become(ctx, c, p, want, "undo")
	change.Restored = save
	return change, err
}

// Saves returns the saves of a workspace, the latest last.
func Saves(c *course.Course, dir string) ([]Save, error) {
	p, err := locate(c.Root, dir)
	if err != nil {
		return nil, err
	}
	return savesOf(c, p).list()
}

// become saves the workspace and makes its files equal to want.
func become(ctx context.Context, c *course.Course, p place, want course.Tree, command string) (change Change, err error) {
	if err := p.mayChange(c); err != nil {
		return change, err
	}
	have, err := course.ReadTreeExcept(p.real, untouched)
	if errors.Is(err, fs.ErrPermission) {
		return change, exit.Usage("%s cannot be saved, and nothing was changed: %w", p.real, err)
	} else if err != nil {
		return change, err
	}
	change.Paths = have.Diff(want)
	if len(change.Paths) == 0 || ctx.Err() != nil {
		return change, ctx.Err()
	}
	change.Saved, change.Removed, err = savesOf(c, p).write(have, "before "+command)
	if err != nil {
		return change, err
	}
	root, err := os.OpenRoot(p.real)
	if err != nil {
		return change, fmt.Errorf("open the workspace: %w", err)
	}
	defer root.Close()
	return change, apply(root, have, want)
}

// leftAlone are folders at the top of a workspace that are neither saved nor
// changed: what a build leaves, and what editors keep about the learner.
var leftAlone = map[string]bool{"bin": true, ".idea": true, ".vscode": true}

// untouched says what in a workspace is neither saved nor changed.
func untouched(path string, entry fs.DirEntry) bool {
	if entry.IsDir() {
		return leftAlone[path]
	}
	return !entry.Type().IsRegular() && entry.Type()&fs.ModeSymlink == 0
}
