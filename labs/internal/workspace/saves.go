package workspace

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// Save is a state of a workspace that was saved before it was replaced.
type Save struct {
	Number int // 1 for the first save of a workspace, 2 for the second
	Time   time.Time
	Reason string // what replaced it: "before solve 4"

	dir string
}

// saves are those of one workspace, each a folder of plain files: 12-before-solve-4.
type saves struct{ dir string }

// savesOf are the saves of a workspace. They are outside of it, in the state folder of the checkout.
func savesOf(c *course.Course, dir string) saves {
	return saves{filepath.Join(c.Root, ".lab", "saves", Key(dir))}
}

// list returns all saves, the latest last.
func (s saves) list() ([]Save, error) {
	entries, err := os.ReadDir(s.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look for saves: %w", err)
	}
	var list []Save
	for _, entry := range entries {
		text, reason, _ := strings.Cut(entry.Name(), "-")
		number, err := strconv.Atoi(text)
		if err != nil {
			continue // the save of a command that was killed: see write
		}
		if info, err := entry.Info(); err == nil {
			list = append(list, Save{number, info.ModTime(), plain.Line(strings.ReplaceAll(reason, "-", " ")), filepath.Join(s.dir, entry.Name())})
		}
	}
	slices.SortFunc(list, func(a, b Save) int { return cmp.Compare(a.Number, b.Number) })
	return list, nil
}

// find returns the save of the given number; "" means the latest.
func (s saves) find(number string) (Save, error) {
	list, err := s.list()
	switch {
	case err != nil:
		return Save{}, err
	case len(list) == 0:
		return Save{}, refuse("there is nothing to bring back: no command has changed this folder yet (saves of other folders are in %s)", filepath.Dir(s.dir))
	case number == "":
		return list[len(list)-1], nil
	}
	i := slices.IndexFunc(list, func(save Save) bool { return strconv.Itoa(save.Number) == number })
	if i < 0 {
		return Save{}, refuse("there is no save %q: ls -t %s lists them", number, plain.Path(s.dir))
	}
	return list[i], nil
}

// write saves a tree, and returns the save's number. The save appears whole or not at all, and is synced to disk.
func (s saves) write(tree course.Tree, reason string) (number int, err error) {
	list, err := s.list()
	if err != nil {
		return 0, err
	}
	number = 1
	if len(list) > 0 {
		number = list[len(list)-1].Number + 1
	}
	half := filepath.Join(s.dir, "half")
	err = errors.Join(os.RemoveAll(half), tree.WriteTo(half)) // a command that was killed may have left one
	if err == nil {
		err = syncFiles(half)
	}
	if err == nil {
		err = os.Rename(half, filepath.Join(s.dir, fmt.Sprintf("%d-%s", number, strings.ReplaceAll(reason, " ", "-"))))
	}
	if err != nil {
		return 0, fmt.Errorf("save your work: %w", err)
	}
	return number, nil
}

// syncFiles syncs the files of a folder to disk.
func syncFiles(dir string) error {
	return filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}
