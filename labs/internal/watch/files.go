package watch

import (
	"context"
	"crypto/sha256"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollPeriod is how often the workspace is looked at where no event says that something happened: on network
	// drives, and on Windows' file systems below WSL2.
	pollPeriod = time.Second
	// debounce is how long nothing may change before a burst is over: an editor that saves all its files, a formatter
	// after it, a checkout. It is part of the wait for every verdict.
	debounce = 100 * time.Millisecond
	// maxBurst bounds a burst that does not end.
	maxBurst = 2 * time.Second
	// eventPause is the time between an event and a look: a log that is written in the workspace is a flood of events.
	eventPause = 20 * time.Millisecond
)

// Change is one change of a workspace, however many files were saved.
type Change struct {
	// Noticed is when the first of it was noticed.
	Noticed time.Time
	// Paths are the files that are not what they were, as slash paths below the workspace, sorted.
	Paths []string
}

// Files tells changes of what a verdict on the workspace depends on: its Go files, go.mod, go.sum and manifests. Tests,
// the Makefile, hidden files, bin/ and what editors leave beside a file are no part of it. It begins with the workspace as
// it is now, and ends with ctx. What counts is content: saving a file that is as it was is no change.
func Files(ctx context.Context, dir string) <-chan Change {
	w := &watcher{dir: dir, period: pollPeriod, debounce: debounce, maxBurst: maxBurst}
	w.events, _ = fsnotify.NewWatcher() // a machine that has none left to give is polled
	return w.start(ctx)
}

// watcher looks at a workspace when an event says so, and once in a while.
type watcher struct {
	dir                        string
	events                     *fsnotify.Watcher // nil where there are none
	period, debounce, maxBurst time.Duration
}

// snapshot is what the relevant files of a workspace held at one moment: the sum of each, by slash path.
type snapshot map[string][sha256.Size]byte

func (w *watcher) start(ctx context.Context) <-chan Change {
	changes, known := make(chan Change), w.look(snapshot{})
	go func() {
		for w.wait(ctx) {
			noticed, now := time.Now(), w.look(known)
			for begun := now; !maps.Equal(known, now) && time.Since(noticed) < w.maxBurst; begun = now {
				time.Sleep(w.debounce)
				if now = w.look(begun); maps.Equal(begun, now) {
					break
				}
			}
			paths := changed(known, now)
			if known = now; len(paths) == 0 {
				continue
			}
			select {
			case changes <- Change{noticed, paths}:
			case <-ctx.Done():
			}
		}
	}()
	return changes
}

// wait returns when it is time for the next look, and false when ctx has ended.
func (w *watcher) wait(ctx context.Context) bool {
	var happened <-chan fsnotify.Event
	var lost <-chan error
	if w.events != nil {
		happened, lost = w.events.Events, w.events.Errors
	}
	select {
	case <-happened:
		time.Sleep(eventPause)
	case <-lost: //nolint:errcheck // events were lost, which says to look and nothing else
	case <-time.After(w.period):
	case <-ctx.Done():
		if w.events != nil {
			_ = w.events.Close()
		}
		return false
	}
	return true
}

// look takes a snapshot, and asks for the events of all folders. A workspace that cannot be read right now, as happens on
// network drives, has not changed; a file that vanishes meanwhile is not there.
func (w *watcher) look(before snapshot) snapshot {
	now := snapshot{}
	root, err := filepath.EvalSymlinks(w.dir)
	if err != nil {
		return before
	}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		slash := filepath.ToSlash(strings.TrimPrefix(strings.TrimPrefix(name, root), string(filepath.Separator)))
		switch {
		case err != nil && slash == "":
			return err
		case err != nil:
			return nil //nolint:nilerr // a folder that nobody may read, or that vanished
		case entry.IsDir() && slash != "" && !followed(slash):
			return fs.SkipDir
		case entry.IsDir():
			if w.events != nil {
				_ = w.events.Add(name) // one that gives no events is polled
			}
		case relevant(slash):
			if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
				if data, err := os.ReadFile(name); err == nil {
					now[slash] = sha256.Sum256(data)
				}
			}
		}
		return nil
	})
	if err != nil {
		return before
	}
	return now
}

// changed are the files that differ between two snapshots, or are in only one of them, sorted.
func changed(a, b snapshot) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(p string, _ [sha256.Size]byte) bool {
		before, was := a[p]
		now, is := b[p]
		return was == is && before == now
	})
	return slices.Sorted(maps.Keys(all))
}

// kinds are the endings of files that a verdict can depend on: what is compiled, what it may embed, and manifests.
// What else a learner embeds is not noticed, and Enter checks it. The other way round, with a list of what to
// ignore, every log and every profile in the workspace would start a check.
var kinds = []string{".go", ".yaml", ".yml", ".json", ".tmpl", ".tpl"}

// relevant says whether a verdict can depend on a file, by its slash path below the workspace. The names that editors
// give to their own files (.x.go.swp, x.go~, #x.go#, .#x.go, 4913) are none of the kinds, or hidden.
func relevant(file string) bool {
	name := path.Base(file)
	switch {
	case hidden(name) || strings.HasSuffix(name, "_test.go"):
		return false
	case file == "go.mod" || file == "go.sum":
		return true
	}
	return slices.Contains(kinds, path.Ext(name))
}

// followed says whether there may be relevant files in a folder, by its slash path below the workspace.
func followed(folder string) bool {
	name := path.Base(folder)
	built := folder == "bin" || folder == "dist"
	return !hidden(name) && !built && name != "testdata" && name != "vendor" && name != "node_modules"
}

// hidden is what the Go command leaves out, and where git and editors keep their own.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }
