// Package folders brings results to a board from folders, one per learner, such as a share that laptops copy
// their .lab to. What lies there was written by learners and is not trusted.
package folders

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/board/intake"
	"github.com/example/operator-lab/labs/internal/board/room"
	"github.com/example/operator-lab/labs/internal/board/store"
)

// Interval is how often the folders are looked at. They may lie on a network share, which tells nobody when
// another machine writes to it; looking at sixty learners takes some milliseconds.
const Interval = time.Second

// places are where a learner's folder may hold its results.
var places = []string{".lab/results", "results"}

// resultFile is the name of a result in such a place.
var resultFile = regexp.MustCompile(`^lab-[0-9]{1,3}\.json$`)

// Folders are those of a room: dir/<learner>/.lab/results or dir/<learner>/results.
type Folders struct {
	dir    string
	intake intake.Intake
	log    func(line string)
	// seen is what every file looked like when it was read last.
	seen map[string]stamp
	// told are complaints that were made, so that each is made once.
	told map[string]bool
}

type stamp struct {
	size int64
	at   time.Time
}

// New watches the folders below dir. log is told, once each, what cannot be read.
func New(dir string, in intake.Intake, log func(line string)) *Folders {
	return &Folders{dir: dir, intake: in, log: log, seen: map[string]stamp{}, told: map[string]bool{}}
}

// Watch reads what is there and what comes, until ctx ends. changed is called when the board has got something.
func (f *Folders) Watch(ctx context.Context, changed func()) {
	ticker := time.NewTicker(Interval)
	defer ticker.Stop()
	for {
		added, err := f.Scan(ctx)
		if err != nil && ctx.Err() == nil {
			f.complain(err.Error())
		}
		if added > 0 {
			changed()
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// Scan looks at every folder once, and says how many results were new. A folder that makes no sense is told to
// log and does not stop the others; the error is about dir itself, or the board.
func (f *Folders) Scan(ctx context.Context) (added int, err error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return 0, fmt.Errorf("read folders of results: %w", err)
	}
	for _, e := range entries {
		if !e.IsDir() || e.Name()[0] == '.' {
			continue
		}
		n, err := f.learner(ctx, e.Name())
		if added += n; err != nil {
			return added, err
		}
	}
	return added, nil
}

// learner reads one folder. Nothing in it leads out of it: a learner's link to somebody else's result, or to a
// file of the instructor's, is not followed.
func (f *Folders) learner(ctx context.Context, name string) (added int, err error) {
	if err := store.CheckName(name); err != nil {
		f.complain(fmt.Sprintf("the folder %q is left out: %v", name, err))
		return 0, nil
	}
	root, err := os.OpenRoot(filepath.Join(f.dir, name))
	if err != nil {
		f.complain(fmt.Sprintf("the folder %s is left out: %v", name, err))
		return 0, nil
	}
	defer root.Close()
	learner, err := f.intake.Store.Learner(ctx, name)
	if err != nil {
		return 0, err
	}
	for _, place := range places {
		entries, err := fs.ReadDir(root.FS(), place)
		if err != nil {
			continue // not there yet
		}
		for _, e := range entries {
			if !resultFile.MatchString(e.Name()) {
				continue
			}
			n, err := f.file(ctx, root, learner, path.Join(place, e.Name()))
			if added += n; err != nil {
				return added, err
			}
		}
	}
	return added, nil
}

// file reads one result, unless it looks as it did the last time.
func (f *Folders) file(ctx context.Context, root *os.Root, learner store.Learner, name string) (int, error) {
	key := learner.Name + "/" + name
	info, err := root.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil // it was there a moment ago
	}
	if err != nil {
		f.complain(fmt.Sprintf("%s is left out: %v", key, err))
		return 0, nil
	}
	if f.seen[key] == (stamp{info.Size(), info.ModTime()}) {
		return 0, nil
	}
	f.seen[key] = stamp{info.Size(), info.ModTime()}
	data, err := read(root, name)
	if err != nil {
		f.complain(fmt.Sprintf("%s is left out: %v", key, err))
		return 0, nil
	}
	added, err := f.intake.Keep(ctx, learner, data, time.Time{})
	invalid := (*intake.InvalidError)(nil)
	if errors.As(err, &invalid) || errors.Is(err, store.ErrQuota) {
		f.complain(fmt.Sprintf("%s is left out: %v", key, err))
		return 0, nil
	}
	if err != nil {
		delete(f.seen, key) // the board's fault: try again
		return 0, err
	}
	if !added {
		return 0, nil
	}
	return 1, nil
}

// read reads a plain file and nothing else. A pipe would be waited for: it is opened without.
func read(root *os.Root, name string) ([]byte, error) {
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is no plain file")
	}
	return io.ReadAll(io.LimitReader(file, room.SizeLimit+1))
}

func (f *Folders) complain(line string) {
	if !f.told[line] {
		f.told[line] = true
		f.log(line)
	}
}
