// Package workspace keeps the folder in which the learner works: it creates it, brings it to a stage of the course, and
// brings the learner's own work back.
//
// It saves all files in .lab/saves of the checkout before it changes one. It neither saves nor changes what is called .git, and
// at the top bin/ and the folders of editors. It runs no program in the workspace once that is made.
//
// Two commands must not change a workspace at once; the caller has to lock it.
package workspace

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"

	"github.com/example/operator-lab/labs/internal/course"
)

// Change tells what a command did to a workspace.
type Change struct {
	Created  bool     // the workspace did not exist before
	Paths    []string // the files that were written or removed, sorted; none when it was already what it should be
	Saved    int      // the number of the save of the state before, 0 when there was nothing to save
	Restored Save     // the save that Restore brought back
}

// Ensure creates the workspace dir with the starter of lab 1 if it does not exist, and says whether it did. It leaves a
// folder that exists as it is, whatever it holds. A place where no workspace can be is a usage error.
func Ensure(ctx context.Context, c *course.Course, dir string) (created bool, err error) {
	dir, exists, err := locate(c.Root, dir)
	if err != nil || exists {
		return false, err
	}
	err = create(ctx, c, dir, 0)
	return err == nil, err
}

// Bring brings the workspace to a stage of the course. reason, such as "before solve 4", names the save of what it was.
func Bring(ctx context.Context, c *course.Course, dir string, stage int, reason string) (Change, error) {
	dir, exists, err := locate(c.Root, dir)
	if err != nil {
		return Change{}, err
	}
	if !exists {
		return Change{Created: true}, create(ctx, c, dir, stage)
	}
	want, err := c.Render(stage)
	if err != nil {
		return Change{}, err
	}
	return replace(ctx, c, dir, want, reason)
}

// Restore brings back the save of the given number; "" means the latest, which is what the last command that changed
// the workspace replaced. It saves what is there now: a second Restore of the latest takes the first one back.
func Restore(ctx context.Context, c *course.Course, dir, number string) (change Change, err error) {
	dir, exists, err := locate(c.Root, dir)
	if err != nil {
		return change, err
	}
	save, err := savesOf(c, dir).find(number)
	if err != nil {
		return change, err
	}
	want, err := course.ReadTree(save.dir)
	if err == nil && exists {
		change, err = replace(ctx, c, dir, want, "before undo")
	} else if err == nil {
		change, err = Change{Created: true, Paths: want.Paths()}, want.WriteTo(dir)
	}
	change.Restored = save
	return change, err
}

// replace saves the workspace and makes its files equal to want.
func replace(ctx context.Context, c *course.Course, dir string, want course.Tree, reason string) (change Change, err error) {
	if err := mayChange(c, dir); err != nil {
		return change, err
	}
	have, err := course.ReadTree(dir, untouched)
	if err != nil {
		return change, refuse("%s cannot be saved, and nothing was changed: %w", dir, err)
	}
	change.Paths = have.Diff(want)
	if len(change.Paths) == 0 || ctx.Err() != nil {
		return change, ctx.Err()
	}
	change.Saved, err = savesOf(c, dir).write(have, reason)
	if err != nil {
		return change, err
	}
	if err := apply(dir, have, want); err != nil {
		return change, fmt.Errorf("change the workspace: %w (your work was saved: `make undo` brings it back)", err)
	}
	return change, nil
}

// untouched says what in a workspace is neither saved nor changed: what a build leaves, the settings of editors, and what is
// neither a file nor a symbolic link.
func untouched(path string, entry fs.DirEntry) bool {
	if entry.IsDir() {
		return path == "bin" || path == ".idea" || path == ".vscode"
	}
	return !entry.Type().IsRegular() && entry.Type()&fs.ModeSymlink == 0
}

// apply makes the files equal to want. have is what was saved: a file that an editor has changed since is not touched.
// All files that differ are removed before one is written: a file may become a folder, or its name may change in case only.
func apply(dir string, have, want course.Tree) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	changed := have.Diff(want)
	for _, name := range changed {
		was, ok := have[name]
		if !ok {
			continue
		}
		if is, err := course.ReadFile(root, name); err != nil || !is.Equal(was) {
			return cmp.Or(err, fmt.Errorf("another program has just changed %s", name))
		}
		if err := root.Remove(name); err != nil {
			return err
		}
		for dir := path.Dir(name); dir != "." && root.Remove(dir) == nil; dir = path.Dir(dir) {
			continue // a folder that is empty without it goes, too
		}
	}
	for _, name := range changed {
		if f, ok := want[name]; ok {
			if err := f.Create(root, name); err != nil {
				return err
			}
		}
	}
	return nil
}
