package workspace

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

// saves are those of one workspace, each a folder of plain files: 12-before-solve-4.
type saves struct {
	dir string
	// most is how many bytes all of them may have. The latest stays, whatever it has.
	most int64
}

// savesOf are the saves of the workspace at a place. They are outside of it, in the state folder of the checkout.
func savesOf(c *course.Course, p place) saves {
	sum := sha256.Sum256([]byte(p.real))
	name := fmt.Sprintf("%.60s-%x", filepath.Base(p.real), sum[:4])
	return saves{filepath.Join(c.Root, ".lab", "saves", name), 1 << 30}
}

// Save is a state of a workspace that was saved before it was replaced.
type Save struct {
	// Number is 1 for the first save of a workspace, and rises.
	Number int
	// Time is when it was saved.
	Time time.Time
	// Reason says what replaced it: "before solve 4".
	Reason string

	dir string
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
			continue // half a save, or somebody's own
		}
		info, err := entry.Info()
		if err != nil {
			return nil, fmt.Errorf("look for saves: %w", err)
		}
		list = append(list, Save{
			Number: number, Time: info.ModTime(), dir: filepath.Join(s.dir, entry.Name()),
			Reason: plain.Line(strings.ReplaceAll(reason, "-", " ")),
		})
	}
	slices.SortFunc(list, func(a, b Save) int { return cmp.Compare(a.Number, b.Number) })
	return list, nil
}

// find returns the save of the given number; "" means the latest.
func (s saves) find(number string) (Save, error) {
	list, err := s.list()
	if err != nil {
		return Save{}, err
	}
	if len(list) == 0 {
		return Save{}, exit.Usage("there is nothing to bring back: no command has changed this folder yet (saves of other folders are in %s)", filepath.Dir(s.dir))
	}
	if number == "" {
		return list[len(list)-1], nil
	}
	for _, save := range list {
		if strconv.Itoa(save.Number) == number {
			return save, nil
		}
	}
	return Save{}, exit.Usage("there is no save %q: `make undo LIST=1` lists them", number)
}

// write saves a tree, then removes the oldest saves if all together have too many bytes, and says how many. The save
// appears whole or not at all, and is on the disk then.
func (s saves) write(tree course.Tree, reason string) (number, removed int, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save your work: %w", err)
		}
	}()
	list, err := s.list()
	if err != nil {
		return 0, 0, err
	}
	number = 1
	if len(list) > 0 {
		number = list[len(list)-1].Number + 1
	}
	fresh := filepath.Join(s.dir, ".new")
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return 0, 0, err
	}
	if err := os.RemoveAll(fresh); err != nil { // of a command that was killed
		return 0, 0, err
	}
	if err := tree.WriteTo(fresh); err != nil {
		return 0, 0, err
	}
	if err := flush(fresh); err != nil {
		return 0, 0, err
	}
	save := Save{Number: number, dir: filepath.Join(s.dir, fmt.Sprintf("%d-%s", number, strings.ReplaceAll(reason, " ", "-")))}
	if err := os.Rename(fresh, save.dir); err != nil {
		return 0, 0, err
	}
	removed, err = s.prune(append(list, save))
	return number, removed, err
}

// flush has the files of a folder written to the disk.
func flush(dir string) error {
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

// prune removes the oldest saves of the list until the others have no more bytes than they may.
func (s saves) prune(list []Save) (removed int, err error) {
	left := s.most
	for i, save := range slices.Backward(list) {
		err := filepath.WalkDir(save.dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				left -= info.Size()
			}
			return err
		})
		if err != nil {
			return removed, err
		}
		if left >= 0 || i == len(list)-1 {
			continue
		}
		if err := os.RemoveAll(save.dir); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}
