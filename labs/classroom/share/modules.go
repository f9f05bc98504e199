// Package share fills a folder with what a classroom on a weak network needs, and serves it: Go modules, the course, Go itself, the
// control plane as it was compiled here, and the node image.
package share

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/course"
)

// interruptGrace is how long a Go command may clean up after an interrupt: it finishes the file it is at.
const interruptGrace = 10 * time.Second

// Modules has a module cache hold what a learner's workspace is compiled of, and the modules in dirs, with their tools. It takes what
// this machine's module cache has, and downloads the rest.
func Modules(ctx context.Context, c *course.Course, modCache string, dirs ...string) error {
	scratch, err := os.MkdirTemp("", "lab-modules-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	tree, err := c.Render(len(c.Labs)) // go.mod is the same at every stage; the last one imports the most
	if err == nil {
		err = tree.WriteTo(scratch)
	}
	if err != nil {
		return err
	}
	out, err := goCommand(ctx, c.Root, nil, "env", "-json", "GOMODCACHE", "GOPROXY")
	var have struct{ GOMODCACHE, GOPROXY string }
	if err == nil {
		err = json.Unmarshal(out, &have)
	}
	if err != nil {
		return err
	}
	env := []string{
		"GOMODCACHE=" + modCache, "GOFLAGS=-modcacherw", "GOTOOLCHAIN=local",
		"GOPROXY=file://" + filepath.Join(have.GOMODCACHE, "cache", "download") + "," + have.GOPROXY,
	}
	for _, dir := range append([]string{scratch}, dirs...) {
		if _, err := goCommand(ctx, dir, env, "mod", "download"); err != nil {
			return err
		}
	}
	// What people do there needs a few modules more than go.mod names: those that tests of other people's packages import.
	_, err = goCommand(ctx, scratch, env, "mod", "tidy")
	return err
}

// goCommand is a Go command that an interrupt ends without leaving half a file. Its error says what it printed.
func goCommand(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(stderr.String())))
	}
	return out, nil
}
