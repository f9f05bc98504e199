package workspace

import (
	"os"
	"os/user"
	"path/filepath"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// place is where a workspace is, or will be.
type place struct {
	given  string // as the user said it
	real   string // absolute, without symbolic links
	exists bool
}

// locate finds the place that dir names. It refuses what can be nobody's
// workspace: files, the root of a file system, home folders, the checkout, and
// whatever contains one of these. root is the checkout.
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
	if Contains(p.real, root) {
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

// courseFolders are the parts of the checkout that are no place for a workspace.
var courseFolders = []string{".git", ".lab", "bin", "clusters", "docs", "labs", "operator", "scripts"}

// outsideCourse refuses a workspace in the middle of the course.
func (p place) outsideCourse(root string) error {
	for _, name := range courseFolders {
		if Contains(filepath.Join(root, name), p.real) {
			return exit.Usage("workspace %s: %s belongs to the course: name a folder of its own", p.given, name)
		}
	}
	return nil
}

// mayChange refuses a folder that looks like nobody's workspace: lab did not make it, and it is not the course's module.
func (p place) mayChange(c *course.Course) error {
	if err := p.outsideCourse(c.Root); err != nil {
		return err
	}
	if _, err := os.Stat(savesOf(c, p).dir); err == nil {
		return nil // made here, or changed before
	}
	ours, err := moduleOf(filepath.Join(c.Root, "operator"))
	if err != nil {
		return err
	}
	if module, err := moduleOf(p.real); err == nil && module == ours {
		return nil
	}
	if entries, err := os.ReadDir(p.real); err == nil && len(entries) == 0 {
		return exit.Usage("workspace %s: the folder is empty: remove it (rmdir %s), and lab makes a workspace there", p.given, p.given)
	}
	return exit.Usage("workspace %s: lab did not make this folder, and it has no go.mod that says `module %s`, so nothing is changed: name one that does not exist yet", p.given, ours)
}

func moduleOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return modfile.ModulePath(data), err
}
