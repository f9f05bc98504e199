// Package workspace keeps the folder in which the learner works: it creates
// it, brings it to a stage of the course, and brings the learner's own work
// back.
//
// It changes only folders that it created itself, and never loses what a
// learner wrote: before it changes anything, it saves all files as a tar file
// in .git/lab/saves. Nothing else in .git is read or changed then, and no
// program runs: a workspace may come from a stranger. What it leaves alone, it
// need not save: everything called .git, and at the top bin/ (what a build
// leaves) and the folders of editors.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

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
	// Saved is the name under which the state before was saved, "" when there
	// was nothing to save. Restore brings it back.
	Saved string
	// Restored is the save that Restore brought back.
	Restored Save
}

// Possible refuses a dir that Ensure would refuse, and creates nothing.
func Possible(c *course.Course, dir string) error {
	p, err := locate(c.Root, dir)
	if err != nil || p.exists {
		return err
	}
	return p.mayCreate(c.Root)
}

// Ensure creates the workspace dir with the starter of lab 1 if it does not
// exist, and says whether it did. A folder that exists is left as it is,
// whatever it holds: its content is for the checks to judge. What can be
// nobody's workspace (see locate) is a usage error, with exit code 2.
func Ensure(ctx context.Context, c *course.Course, dir string) (created bool, err error) {
	p, err := locate(c.Root, dir)
	if err != nil {
		return false, err
	}
	if p.exists {
		return false, nil
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
	w, err := open(p)
	if err != nil {
		return Change{}, err
	}
	defer w.close()
	return w.become(ctx, want, command)
}

// Restore brings back the save of the given name; "" means the latest, which is
// what the last command that changed the workspace replaced. It saves what is
// there now: a second Restore of the latest takes the first one back.
func Restore(ctx context.Context, dir, name string) (Change, error) {
	p, err := locate("", dir)
	if err != nil {
		return Change{}, err
	}
	if !p.exists {
		return Change{}, exit.Usage("there is no workspace %s, so there is nothing to bring back", dir)
	}
	w, err := open(p)
	if err != nil {
		return Change{}, err
	}
	defer w.close()
	save, err := w.repo.save(name)
	if err != nil {
		return Change{}, err
	}
	want, err := w.repo.read(save.Name)
	if err != nil {
		return Change{}, err
	}
	change, err := w.become(ctx, want, "undo")
	change.Restored = save
	return change, err
}

// Saves returns the saves of a workspace, the latest last.
func Saves(dir string) ([]Save, error) {
	p, err := locate("", dir)
	if err != nil {
		return nil, err
	}
	if err := p.requireOurs(); err != nil {
		return nil, err
	}
	saves, _, err := repoOf(p.real).saves()
	return saves, err
}

// create makes the workspace with the files of a stage and a repository with
// one commit of them. It appears whole or not at all.
func create(ctx context.Context, c *course.Course, p place, stage int) (err error) {
	if err := p.mayCreate(c.Root); err != nil {
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
	if err := tree.WriteTo(tmp); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	if err := repoOf(tmp).init(ctx, tree, startOf(stage)); err != nil {
		return err
	}
	if err := os.Rename(tmp, p.real); err != nil {
		return fmt.Errorf("create the workspace: %w", err)
	}
	return nil
}

func startOf(stage int) string { return fmt.Sprintf("Start of lab %d", stage+1) }

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
	if err := repoOf(tmp).init(ctx, tree, startOf(0)); err != nil {
		return nil, err
	}
	repository, err := course.ReadTree(filepath.Join(tmp, gitDir))
	if err != nil {
		return nil, fmt.Errorf("make a workspace to hand out: %w", err)
	}
	for name, file := range repository {
		tree[gitDir+"/"+name] = file
	}
	return tree, nil
}

// workspace is an open workspace that nobody else changes meanwhile, not even a
// command of another checkout.
type workspace struct {
	dir  string
	root *os.Root
	repo *repo
	lock interface{ Unlock() error }
}

func open(p place) (*workspace, error) {
	if err := p.requireOurs(); err != nil {
		return nil, err
	}
	repo := repoOf(p.real)
	lock, err := repo.tryLock()
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(p.real)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open the workspace: %w", err), lock.Unlock())
	}
	return &workspace{dir: p.real, root: root, repo: repo, lock: lock}, nil
}

func (w *workspace) close() {
	_ = w.root.Close()
	_ = w.lock.Unlock()
}

// become saves the workspace and makes its files equal to want.
func (w *workspace) become(ctx context.Context, want course.Tree, command string) (Change, error) {
	var change Change
	have, err := course.ReadTreeExcept(w.dir, untouched)
	if errors.Is(err, fs.ErrPermission) {
		return change, cannotChange(w.dir, err)
	} else if err != nil {
		return change, err
	}
	change.Paths = have.Diff(want)
	if len(change.Paths) == 0 {
		return change, nil
	}
	if err := ctx.Err(); err != nil {
		return change, err
	}
	if err := w.probe(change.Paths); err != nil {
		return change, err
	}
	change.Saved, err = w.repo.write(have, "before "+command)
	if err != nil {
		return change, err
	}
	return change, w.apply(have, want)
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
