package workspace

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// cannotChange says what to do about a workspace that cannot be written to.
func cannotChange(dir string, err error) error {
	return exit.Usage("%s cannot be changed, and nothing was: %w", dir, err)
}

// probe makes sure that what is at paths can be changed, before anything is.
func (w *workspace) probe(paths []string) error {
	seen := map[string]bool{}
	for _, p := range paths {
		dir := path.Dir(p)
		if seen[dir] {
			continue
		}
		seen[dir] = true
		if err := w.probeDir(dir); err != nil {
			return cannotChange(w.dir, err)
		}
	}
	return nil
}

// probeDir writes into a folder, or into the one above that will hold it.
func (w *workspace) probeDir(dir string) error {
	for {
		info, err := w.root.Lstat(filepath.FromSlash(dir))
		if err == nil && info.IsDir() {
			break
		}
		dir = path.Dir(dir)
	}
	name := filepath.Join(filepath.FromSlash(dir), ".lab-probe-"+strconv.Itoa(os.Getpid()))
	file, err := w.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), w.root.Remove(name))
}

// apply makes the files equal to want. have is what was read and saved: a file
// that is no longer what it was is never touched. If anything goes wrong, the
// files are put back.
func (w *workspace) apply(have, want course.Tree) error {
	err := w.replace(have, want)
	if err == nil {
		return nil
	}
	now, readErr := course.ReadTreeExcept(w.dir, untouched)
	if readErr == nil {
		readErr = w.replace(now, putBack(now, have, want))
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
func (w *workspace) replace(have, want course.Tree) error {
	changed := have.Diff(want)
	for _, p := range changed {
		if _, ok := have[p]; !ok {
			continue
		}
		if err := w.takeAway(p, have[p]); err != nil {
			return err
		}
	}
	for _, p := range changed {
		if f, ok := want[p]; ok {
			if err := f.Create(w.root, p); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeAway removes a file that is still what it was, and the folders that are
// empty without it.
func (w *workspace) takeAway(p string, was course.File) error {
	is, err := course.ReadFile(w.root, p)
	if err != nil {
		return err
	}
	if !is.Equal(was) {
		return fmt.Errorf("%s was changed by somebody else just now", p)
	}
	if err := w.root.Remove(filepath.FromSlash(p)); err != nil {
		return err
	}
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if w.root.Remove(filepath.FromSlash(dir)) != nil {
			break // not empty
		}
	}
	return nil //nolint:nilerr // a folder with something in it stays
}
