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
	Number int // 1 for the first save of a workspace, and rises
	Time   time.Time
	Reason string // what replaced it: "before solve 4"

	dir string
}

// saves are those of one workspace, each a folder of plain files: 12-before-solve-4.
type saves struct {
	dir  string
	most int64 // bytes that all of them may have; the latest stays, whatever it has
}

// savesOf are the saves of a workspace. They are outside of it, in the state folder of the checkout.
func savesOf(c *course.Course, dir string) saves {
	return saves{filepath.Join(c.Root, ".lab", "saves", Key(dir)), 1 << 30}
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
			continue // half a save
		}
		info, err := entry.Info()
		if err != nil {
			return nil, fmt.Errorf("look for saves: %w", err)
		}
		list = append(list, Save{number, info.ModTime(), plain.Line(strings.ReplaceAll(reason, "-", " ")), filepath.Join(s.dir, entry.Name())})
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
		return Save{}, refuse("there is no save %q: `make undo LIST=1` lists them", number)
	}
	return list[i], nil
}

// write saves a tree, then removes the oldest saves if all together have too many bytes, and says how many. The save
// appears whole or not at all, and is on the disk then.
func (s saves) write(tree course.Tree, reason string) (number, removed int, err error) {
	list, err := s.list()
	if err != nil {
		return 0, 0, err
	}
	number = 1
	if len(list) > 0 {
		number = list[len(list)-1].Number + 1
	}
	half := filepath.Join(s.dir, "half")
	save := Save{Number: number, dir: filepath.Join(s.dir, fmt.Sprintf("%d-%s", number, strings.ReplaceAll(reason, " ", "-")))}
	err = errors.Join(os.RemoveAll(half), tree.WriteTo(half)) // there is one of a command that was killed
	if err == nil {
		_, err = eachFile(half, (*os.File).Sync)
	}
	if err == nil {
		err = os.Rename(half, save.dir)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("save your work: %w", err)
	}
	removed, err = s.prune(append(list, save))
	return number, removed, err
}

// prune removes the oldest saves of the list until the others have no more bytes than they may.
func (s saves) prune(list []Save) (removed int, err error) {
	left := s.most
	for i, save := range slices.Backward(list) {
		size, err := eachFile(save.dir, func(*os.File) error { return nil })
		if left -= size; left < 0 && i < len(list)-1 {
			err = os.RemoveAll(save.dir)
			removed++
		}
		if err != nil {
			return removed, fmt.Errorf("remove an old save: %w", err)
		}
	}
	return removed, nil
}

// eachFile does something with each file of a folder, and gives the bytes of all.
func eachFile(dir string, do func(*os.File) error) (size int64, err error) {
	err = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		info, err := file.Stat()
		if err != nil {
			return err
		}
		size += info.Size()
		return do(file)
	})
	return size, err
}
