package workspace

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// Key is the name of a workspace in the state folder. dir is a path that [Real] returns.
func Key(dir string) string {
	sum := sha256.Sum256([]byte(dir))
	return fmt.Sprintf("%.60s-%x", filepath.Base(dir), sum[:4])
}

// Real is the absolute path without symbolic links, also where its end does not exist yet. A path with a link that leads
// nowhere stays as it is.
func Real(dir string) string {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return dir
	}
	for rest, d := "", dir; ; d = filepath.Dir(d) {
		if real, err := filepath.EvalSymlinks(d); err == nil {
			return filepath.Join(real, rest)
		}
		if _, err := os.Lstat(d); err == nil || d == filepath.Dir(d) {
			return dir
		}
		rest = filepath.Join(filepath.Base(d), rest)
	}
}

// Contains says whether inner is the folder outer or below it, whatever symbolic links their paths have.
func Contains(outer, inner string) bool {
	rel, err := filepath.Rel(Real(outer), Real(inner))
	return err == nil && filepath.IsLocal(rel)
}

// Possible refuses a dir that [Ensure] would refuse, and creates nothing.
func Possible(c *course.Course, dir string) error {
	_, _, err := locate(c.Root, dir)
	return err
}

// locate returns the real path of a workspace, and whether it exists. It refuses a new one in a folder of the course.
func locate(root, dir string) (real string, exists bool, err error) {
	real = Real(dir)
	switch info, err := os.Stat(real); {
	case err == nil && info.IsDir():
		return real, true, nil
	case err == nil || errors.Is(err, syscall.ENOTDIR):
		return "", false, refuse("workspace %s is a file, or below one: name a folder, or one that does not exist yet", dir)
	}
	if _, err := os.Lstat(real); err == nil {
		return "", false, refuse("workspace %s is a symbolic link that leads nowhere", dir)
	}
	return real, false, outsideCourse(root, real)
}

// outsideCourse refuses the folders of the checkout that belong to the course.
func outsideCourse(root, dir string) error {
	for _, name := range []string{".git", ".lab", "bin", "clusters", "docs", "labs", "operator", "scripts"} {
		if Contains(filepath.Join(root, name), dir) {
			return refuse("workspace %s: %s belongs to the course: name a folder of its own", dir, name)
		}
	}
	return nil
}

// mayChange refuses a folder that the lab did not make and that is not the course's module.
func mayChange(c *course.Course, dir string) error {
	if err := outsideCourse(c.Root, dir); err != nil {
		return err
	}
	if _, err := os.Stat(savesOf(c, dir).dir); err == nil {
		return nil // made here, or changed before
	}
	ours, err := moduleOf(filepath.Join(c.Root, course.SourceDir))
	if err != nil {
		return err
	}
	if module, err := moduleOf(dir); err == nil && module == ours {
		return nil
	}
	return refuse("nothing was changed: the lab did not make the folder %s, and it has no go.mod with the line `module %s`. "+
		"Name a folder that does not exist yet (rmdir removes an empty one)", dir, ours)
}

func moduleOf(dir string) (string, error) {
	data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	return modfile.ModulePath(data), err
}

// refuse is an error about the folder or the save that somebody has named. Nothing was changed.
func refuse(format string, args ...any) error { return exit.Usage(format, args...) }
