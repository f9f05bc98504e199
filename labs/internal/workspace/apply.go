package workspace

import (
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/course"
)

// apply makes the files equal to want. have is what was read and saved: a file
// that is no longer what it was is never touched. If anything goes wrong, the
// files are put back.
func apply(root *os.Root, have, want course.Tree) error {
	err := replace(root, have, want)
	if err == nil {
		return nil
	}
	now, readErr := course.ReadTreeExcept(root.Name(), untouched)
	if readErr == nil {
		readErr = replace(root, now, putBack(now, have, want))
	}
	if readErr != nil {
		return fmt.Errorf("change the workspace: %w (putting it back failed too: %w; `bin/lab undo` brings back your work)", err, readErr)
	}
	return fmt.Errorf("change the workspace, which is as it was: %w", err)
}

// putBack is what a half-changed workspace should become again: as it was,
// except for what somebody else changed meanwhile.
func putBack(now, have, want course.Tree) course.Tree {
	back := course.Tree{}
	for p, f := range now {
		ours, isOurs := want[p]
		if !isOurs || !ours.Equal(f) {
			back[p] = f
		}
	}
	for p, f := range have {
		if _, touched := back[p]; !touched {
			back[p] = f
		}
	}
	return back
}

// replace first takes away what is in the way, then writes. The order matters
// where upper and lower case are the same, and where a file becomes a folder.
func replace(root *os.Root, have, want course.Tree) error {
	changed := have.Diff(want)
	for _, p := range changed {
		if _, ok := have[p]; !ok {
			continue
		}
		if err := takeAway(root, p, have[p]); err != nil {
			return err
		}
	}
	for _, p := range changed {
		if f, ok := want[p]; ok {
			if err := f.Create(root, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAway removes a file that is still what it was, and the folders that are
// empty without it.
func takeAway(root *os.Root, p string, was course.File) error {
	is, err := course.ReadFile(root, p)
	if err != nil {
		return err
	}
	if !is.Equal(was) {
		return fmt.Errorf("%s was changed by somebody else just now", p)
	}
	if err := root.Remove(filepath.FromSlash(p)); err != nil {
		return err
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if root.Remove(filepath.FromSlash(dir)) != nil {
			break // not empty
		}
	}
	return nil //nolint:nilerr // a folder with something in it stays
}
