// Package grade judges what learners handed in, one after the other, each in containers and on clusters of their own.
// Nothing that was handed in is trusted: not its code, not its files, not its names.
package grade

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/plain"
)

// How many characters of a name, of a path, and of a reason are shown.
const (
	nameLimit = 60
	pathLimit = 100
	lineLimit = 160
)

// Submission is what one learner handed in.
type Submission struct {
	// Name is the folder's, without what could do harm on a terminal. Where it would be somebody else's, too, it ends with the ID.
	Name string
	// ID is what files of this learner are called here: a part of a path, and nobody else's.
	ID string
	// Path is where it is.
	Path string
}

// Find lists what is in dir: a folder or a repository for each learner, sorted by name. Hidden entries and plain files
// are nobody's; their names are returned, so that somebody can wonder about them. A folder that cannot be read, or has
// nobody in it, is wrong input.
func Find(dir string) (all []Submission, others []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, exit.Usage("%s cannot be read: name a folder with a folder or repository for each learner (%v)", dir, errors.Unwrap(err))
	}
	taken := map[string]bool{}
	for _, entry := range entries {
		name := plain.Short(entry.Name(), nameLimit)
		if strings.HasPrefix(entry.Name(), ".") || entry.Type().IsRegular() {
			others = append(others, name)
			continue
		}
		all = append(all, Submission{Name: strings.TrimSuffix(name, ".git"), ID: identifier(entry.Name(), taken), Path: filepath.Join(dir, entry.Name())})
	}
	if len(all) == 0 {
		return nil, others, exit.Usage("%s has no folders: it should have a folder or repository for each learner", dir)
	}
	for again := true; again; { // somebody may be called like what becomes of a name here
		again = false
		named := map[string]int{}
		for _, s := range all {
			named[s.Name]++
		}
		for i, s := range all {
			if named[s.Name] > 1 { // "ada" beside "ada.git"
				all[i].Name, again = fmt.Sprintf("%s (%s)", s.Name, s.ID), true
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Submission) int { return cmp.Compare(a.Name, b.Name) })
	return all, others, nil
}

// identifier is a name for files that differs from all taken ones.
func identifier(name string, taken map[string]bool) string {
	id := strings.Trim(strings.Map(func(r rune) rune {
		if r < 128 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_') {
			return r
		}
		return '-'
	}, strings.TrimSuffix(name, ".git")), "-")
	id = cmp.Or(id[:min(len(id), nameLimit)], "learner")
	unique := id
	for n := 2; taken[strings.ToLower(unique)]; n++ { // some file systems do not tell cases apart
		unique = fmt.Sprintf("%s-%d", id, n)
	}
	taken[strings.ToLower(unique)] = true
	return unique
}

// Refused says why something that was handed in is not looked at any further. It is the learner's to fix.
type Refused struct{ Why string }

func (r *Refused) Error() string { return r.Why }

func refuse(format string, args ...any) error { return &Refused{fmt.Sprintf(format, args...)} }

// form is how something was handed in.
type form int

const (
	folder     form = iota
	repository      // a bare one
)

// formOf looks at what lies at path. A repository with files beside it is a folder: people hand in what they see, and
// a workspace is a repository in which nobody has to commit anything.
func formOf(path string) (form, string, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return folder, "", fmt.Errorf("look at %s: %w", path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		return folder, "", refuse("what was handed in is a symbolic link: hand in the folder itself")
	case !info.IsDir():
		return folder, "", refuse("what was handed in is no folder")
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return folder, "", fmt.Errorf("look at %s: %w", path, err)
	}
	git := filepath.Join(path, ".git")
	if len(entries) == 1 && entries[0].Name() == ".git" && isRepository(git) {
		return repository, git, nil // cloned without files
	}
	if isRepository(path) {
		return repository, path, nil
	}
	return folder, path, nil
}

// isRepository says whether dir is what git calls a git directory.
func isRepository(dir string) bool {
	for name, wanted := range map[string]fs.FileMode{"HEAD": 0, "objects": fs.ModeDir, "refs": fs.ModeDir} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode().Type() != wanted {
			return false
		}
	}
	return true
}
