package watch

import (
	"context"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	// pollPeriod is how often the workspace is looked at where no event says that something happened: on network
	// drives, and on Windows' file systems below WSL2. It is done everywhere, so that nobody has to find out where
	// it is needed.
	pollPeriod = time.Second
	// pollShare bounds what polling takes of a core, whatever the workspace holds: after a look that took t there is
	// none for pollShare × t.
	pollShare = 20
	// quiet is how long nothing may happen before a burst is over: an editor that saves all its files, a formatter
	// after it, a checkout. It is part of the wait for every verdict, and whoever saves later is checked anew.
	quiet = 100 * time.Millisecond
	// longest bounds a burst that does not end.
	longest = 2 * time.Second
)

// Change is one change of a workspace, however many files were saved.
type Change struct {
	// Noticed is when the first of it was noticed: at once where the file system tells, within a second elsewhere.
	Noticed time.Time
	// Paths are the files that are not what they were, as slash paths below the workspace, sorted.
	Paths []string
}

// Files watches what a verdict on a workspace depends on: its Go files, go.mod, go.sum and manifests. Tests,
// the Makefile, hidden files, bin/ and what editors leave beside a file are no part of it.
//
// What counts is content. Saving a file that is as it was, or bringing it back before the burst is over, is no
// change. Events of the file system only say when to look; where none arrive, it is looked once a second.
type Files struct {
	dir    string
	told   snapshot
	events *fsnotify.Watcher // nil where there are none
	known  []string          // the folders of the last look

	period, quiet, longest time.Duration
	after                  func(time.Duration) <-chan time.Time // time.After; of bursts only
}

// NewFiles begins with the workspace as it is now; what changes from here on is told by [Files.Run]. A workspace
// that does not exist yet may come into being.
func NewFiles(dir string) *Files {
	f := &Files{dir: dir, period: pollPeriod, quiet: quiet, longest: longest, after: time.After}
	f.events, _ = fsnotify.NewWatcher() // a machine may have none left to give; then polling has to do
	f.told = take(dir, snapshot{})
	f.follow(f.told.folders)
	return f
}

// Run tells changes until ctx ends. It is called once.
func (f *Files) Run(ctx context.Context, changes chan<- Change) {
	happened := make(chan struct{}, 1)
	if f.events != nil {
		defer f.events.Close()
		go forward(f.events, happened)
	}
	var took time.Duration
	for more := false; more || f.wait(ctx, took, happened); {
		begun := time.Now()
		now := take(f.dir, f.told)
		took = time.Since(begun)
		more = f.follow(now.folders) // what happened in a new folder before it was followed was no event
		if len(f.told.changed(now)) > 0 {
			now = f.settle(ctx, now)
		}
		paths := f.told.changed(now)
		f.told = now // also what files of the same content are like
		if len(paths) == 0 {
			continue
		}
		select {
		case changes <- Change{begun, paths}:
		case <-ctx.Done():
			return
		}
	}
}

// settle waits for the end of a burst and returns what it left.
func (f *Files) settle(ctx context.Context, now snapshot) snapshot {
	for end := time.Now().Add(f.longest); time.Now().Before(end) && ctx.Err() == nil; {
		select {
		case <-f.after(f.quiet):
		case <-ctx.Done():
		}
		next := take(f.dir, now)
		more := f.follow(next.folders) || len(now.changed(next)) > 0
		if now = next; !more {
			break
		}
	}
	return now
}

// wait returns when it is time for the next look, after one that took so long: when something happened, or after
// the period. It returns false when ctx has ended.
func (f *Files) wait(ctx context.Context, took time.Duration, happened <-chan struct{}) bool {
	rest := time.NewTimer(took) // whatever happens: a log that is written in the workspace is a flood of events
	defer rest.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-rest.C:
	}
	timer := time.NewTimer(max(f.period, pollShare*took))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-happened:
	case <-timer.C:
	}
	return true
}

// forward tells of events until the watcher is closed, of many that nobody has asked for yet as of one. An error says that
// events were lost, which is as good a reason to look.
func forward(watcher *fsnotify.Watcher, happened chan<- struct{}) {
	for {
		var open bool
		select {
		case _, open = <-watcher.Events:
		case _, open = <-watcher.Errors:
		}
		if !open {
			return
		}
		select {
		case happened <- struct{}{}:
		default:
		}
	}
}

// follow asks for the events of these folders and of no others, and says whether there are new ones among them. One
// that cannot be followed is polled.
func (f *Files) follow(folders []string) (more bool) {
	if f.events == nil {
		return false
	}
	followed := f.events.WatchList()
	for _, folder := range folders {
		if !slices.Contains(followed, folder) {
			_ = f.events.Add(folder)
			more = more || !slices.Contains(f.known, folder)
		}
	}
	f.known = folders
	for _, folder := range followed {
		if !slices.Contains(folders, folder) {
			_ = f.events.Remove(folder)
		}
	}
	return more
}
