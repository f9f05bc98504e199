package main

import (
	"encoding/hex"
	"hash/fnv"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// lock keeps two commands from working on one workspace at the same time. Nothing of it is left when it is
// released, so that a command that refuses has changed nothing.
func (a *app) lock() (unlock func(), err error) {
	h := fnv.New64a()
	h.Write([]byte(a.workspace))
	return a.Lock(hex.EncodeToString(h.Sum(nil)), a.workspace)
}

// lockPossible locks a workspace that is there, or can be made.
func (a *app) lockPossible(c *course.Course) (unlock func(), err error) {
	if err := workspace.Possible(c, a.workspace); err != nil {
		return nil, err
	}
	return a.lock()
}

// resolve makes the workspace's path absolute.
func (a *app) resolve() error {
	abs, err := filepath.Abs(a.workspace)
	if err != nil {
		return exit.Usage("WORKSPACE=%s: %v", a.workspace, err)
	}
	a.workspace = target(abs)
	return nil
}

// target is the path without symbolic links, also where its end does not exist yet: one workspace has one lock and one
// history, and who walks through a folder does not follow a link to it. A path with a link that leads nowhere stays as
// it is; whoever opens the workspace says what is wrong with it.
func target(path string) string {
	for rest, dir := "", path; ; dir = filepath.Dir(dir) {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			return filepath.Join(real, rest)
		}
		if _, err := os.Lstat(dir); err == nil || dir == filepath.Dir(dir) {
			return path
		}
		rest = filepath.Join(filepath.Base(dir), rest)
	}
}
