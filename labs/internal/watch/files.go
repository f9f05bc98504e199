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
)

// period is the time between two looks at the workspace. Events of the file system would come sooner, but not from network drives, nor
// from a Windows drive below WSL2.
const period = 200 * time.Millisecond

// snapshot is what the relevant files of a workspace held at one moment: the sum of each, by slash path.
type snapshot map[string][sha256.Size]byte

// Files tells that something has changed of what a verdict on the workspace depends on: its Go files, go.mod, go.sum and manifests. It
// ignores tests, the Makefile, hidden files, bin/ and what editors leave beside a file. It compares with the workspace as it is now, and
// stops when ctx ends. A change is told when two looks in a row saw the same: a formatter may follow an editor. Only content counts:
// saving a file without a change is none.
func Files(ctx context.Context, dir string) <-chan struct{} {
	changes, known := make(chan struct{}), look(dir, snapshot{})
	go func() {
		now := known
		for tick := time.Tick(period); ; {
			select {
			case <-tick:
			case <-ctx.Done():
				return
			}
			before := now
			if now = look(dir, before); !maps.Equal(before, now) || maps.Equal(known, now) {
				continue
			}
			select {
			case changes <- struct{}{}:
				known = now
			case <-ctx.Done():
			}
		}
	}()
	return changes
}

// look takes a snapshot. A workspace that cannot be read right now, as happens on network drives, has not changed; a file that vanishes
// meanwhile is not there.
func look(dir string, before snapshot) snapshot {
	now := snapshot{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case name == ".":
			return err
		case err != nil:
			return nil //nolint:nilerr // a folder that nobody may read, or that vanished
		case entry.IsDir() && !followed(name):
			return fs.SkipDir
		case entry.Type().IsRegular() && relevant(name):
			if data, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name))); err == nil {
				now[name] = sha256.Sum256(data)
			}
		}
		return nil
	})
	if err != nil {
		return before
	}
	return now
}

// kinds are the endings of files that a verdict can depend on: what is compiled, what it may embed, and manifests. It is no list of
// endings to ignore, because then every log in the workspace would start a check.
var kinds = []string{".go", ".mod", ".sum", ".yaml", ".yml", ".json", ".tmpl", ".tpl"}

// relevant says whether a verdict can depend on a file. The names that editors give to their own files (.x.go.swp, x.go~, #x.go#, .#x.go,
// 4913) are none of the kinds, or hidden.
func relevant(file string) bool {
	name := path.Base(file)
	return !hidden(name) && !strings.HasSuffix(name, "_test.go") && slices.Contains(kinds, path.Ext(name))
}

// followed says whether there may be relevant files in a folder, by its slash path below the workspace.
func followed(folder string) bool {
	return !hidden(path.Base(folder)) && !slices.Contains([]string{"bin", "dist"}, folder) &&
		!slices.Contains([]string{"testdata", "vendor", "node_modules"}, path.Base(folder))
}

// hidden is what the Go command leaves out, and where git and editors keep their own.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }
