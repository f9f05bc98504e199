package main

import (
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// lock keeps two commands from working on one workspace at the same time. Nothing of it is left when it is
// released, so that a command that refuses has changed nothing.
func (a *app) lock() (unlock func(), err error) {
	return a.Lock(workspace.Key(a.workspace), a.workspace)
}

// lockPossible locks a workspace that is there, or can be made.
func (a *app) lockPossible(c *course.Course) (unlock func(), err error) {
	if err := workspace.Possible(c, a.workspace); err != nil {
		return nil, err
	}
	return a.lock()
}
