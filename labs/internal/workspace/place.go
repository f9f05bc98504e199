package workspace

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// place is where a workspace is, or will be.
type place struct {
	given  string // as the user said it
	real   string // absolute, without symbolic links
	exists bool
}

// locate finds the place that dir names. It refuses what can be nobody's
// workspace: files, the root of a file system, home folders, the checkout, and
// whatever contains one of these. root is the checkout, "" if it is not known.
func locate(root, dir string) (place, error) {
	if dir == "" {
		return place{}, exit.Usage("the workspace's name is empty: WORKSPACE=dir names a folder")
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return place{}, exit.Usage("workspace %s: %w", dir, err)
	}
	p, err := resolve(dir, abs)
	if err != nil {
		return place{}, err
	}
	return p, p.refuseProtected(root)
}

// resolve follows the symbolic links of the part of the path that exists.
func resolve(given, abs string) (place, error) {
	rest := ""
	for dir := abs; ; dir = filepath.Dir(dir) {
		real, err := filepath.EvalSymlinks(dir)
		if err == nil {
			if info, err := os.Stat(real); err == nil && !info.IsDir() {
				return place{}, exit.Usage("workspace %s: %s is a file: name a folder, or one that does not exist yet", given, dir)
			}
			return place{given: given, real: filepath.Join(real, rest), exists: rest == ""}, nil
		}
		if _, lstatErr := os.Lstat(dir); lstatErr == nil {
			return place{}, exit.Usage("workspace %s: %s is a symbolic link that leads nowhere", given, dir)
		}
		if dir == filepath.Dir(dir) {
			return place{}, exit.Usage("workspace %s: %w", given, err)
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}

func (p place) refuseProtected(root string) error {
	if !p.exists {
		return nil
	}
	if filepath.Dir(p.real) == p.real {
		return exit.Usage("workspace %s: that is the whole file system: name a folder of its own", p.given)
	}
	if root != "" && Contains(p.real, root) {
		return exit.Usage("workspace %s: that folder holds the course itself: name a folder of its own", p.given)
	}
	for _, home := range homes() {
		if Contains(p.real, home) {
			return exit.Usage("workspace %s: that is a home folder: name a folder of its own", p.given)
		}
	}
	return nil
}

func homes() (dirs []string) {
	if dir, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, dir)
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		dirs = append(dirs, u.HomeDir)
	}
	return dirs
}

// Contains says whether inner is the folder outer or below it, whatever their absolute paths look like (symbolic links, upper and
// lower case). A folder that does not exist contains nothing.
func Contains(outer, inner string) bool {
	out, err := os.Stat(outer)
	if err != nil {
		return false
	}
	for ; ; inner = filepath.Dir(inner) {
		if real, err := filepath.EvalSymlinks(inner); err == nil {
			inner = real
		}
		if in, err := os.Stat(inner); err == nil && os.SameFile(out, in) {
			return true
		}
		if filepath.Dir(inner) == inner {
			return false
		}
	}
}

// courseFolders are the parts of the checkout in which no workspace is made.
var courseFolders = []string{".git", ".lab", "bin", "clusters", "docs", "labs", "operator", "scripts"}

// mayCreate refuses to make a workspace in the middle of the course.
func (p place) mayCreate(root string) error {
	for _, name := range courseFolders {
		folder := filepath.Join(root, name)
		if real, err := filepath.EvalSymlinks(folder); err == nil {
			folder = real
		}
		if within(folder, p.real) {
			return exit.Usage("workspace %s: %s belongs to the course: name a folder of its own", p.given, name)
		}
	}
	return nil
}

func within(outer, inner string) bool {
	rel, err := filepath.Rel(outer, inner)
	return err == nil && filepath.IsLocal(rel)
}

// requireOurs refuses a folder that this package did not create.
func (p place) requireOurs() error {
	err := p.ours()
	if err == nil {
		return nil
	}
	if entries, readErr := os.ReadDir(p.real); readErr == nil && len(entries) == 0 {
		return exit.Usage("workspace %s: the folder is empty, and was not created by lab: remove it first (rmdir %s)", p.given, p.given)
	}
	return exit.Usage("workspace %s: lab changes only folders that it created, and %w: name one that does not exist yet", p.given, err)
}

// ours returns nil if this package created the workspace, or why it believes
// that it did not. The mark is in the repository, not among the learner's
// files; a link in its way is somebody's trick.
func (p place) ours() error {
	for _, name := range []string{gitDir, filepath.Join(gitDir, labDir), filepath.Join(gitDir, labDir, markFile)} {
		info, err := os.Lstat(filepath.Join(p.real, name))
		if err != nil {
			return errors.New("this one has no mark of it")
		}
		if wantDir := filepath.Base(name) != markFile; wantDir != info.IsDir() || !wantDir && !info.Mode().IsRegular() {
			return notMade(name)
		}
	}
	lock := filepath.Join(gitDir, labDir, lockFile)
	if info, err := os.Lstat(filepath.Join(p.real, lock)); err == nil && !info.Mode().IsRegular() {
		return notMade(lock) // to lock a link makes a file wherever it leads
	}
	saves := filepath.Join(gitDir, filepath.FromSlash(savesDir))
	if info, err := os.Lstat(filepath.Join(p.real, saves)); err == nil && !info.IsDir() {
		return notMade(saves)
	}
	return nil
}

func notMade(name string) error {
	return fmt.Errorf("%s in this one is not what it made", filepath.ToSlash(name))
}
