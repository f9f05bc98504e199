package nodeimage

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/clusters"
	containerengine "github.com/example/operator-lab/clusters/engine"
)

// engine is the name of a container engine's command line: docker, podman or nerdctl.
type engine string

const (
	// releaseTimeout bounds the removal of a container whose command was interrupted.
	releaseTimeout = 30 * time.Second
	// endDelay is what a cancelled command has for its own clean-up.
	endDelay = 20 * time.Second
)

// run runs the engine's command line and returns what it printed. The error carries the end of its error output.
func (e engine) run(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	return run(ctx, stdin, string(e), args...)
}

// run runs a command and returns its trimmed output. The error carries the last lines of its error output.
func run(ctx context.Context, stdin io.Reader, name string, args ...string) (string, error) {
	var stdout bytes.Buffer
	if err := runTo(ctx, &stdout, stdin, name, args...); err != nil {
		return "", err
	}
	return strings.TrimSpace(stdout.String()), nil
}

// runTo is run for output that is too much to keep.
func runTo(ctx context.Context, stdout io.Writer, stdin io.Reader, name string, args ...string) error {
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // scripts clean up after themselves
	cmd.WaitDelay = endDelay
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("run %s %s: %w: %s", name, args[0], err, lastLines(stderr.String()))
	}
	return nil
}

// lastLines is the end of a program's error output in one line.
func lastLines(output string) string {
	const keep = 3
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "; ")
}

// inspect returns nil when the engine has no image of that name.
func (e engine) inspect(ctx context.Context, ref string) (*inspection, error) {
	out, err := e.run(ctx, nil, "image", "inspect", ref)
	if err != nil {
		if _, failed := errors.AsType[*exec.ExitError](err); !failed {
			return nil, err
		}
		// An engine that is down fails like an image that is missing.
		if err := containerengine.Ping(ctx, string(e)); err != nil {
			return nil, &clusters.Problem{What: "no container engine", Reason: clusters.ErrNoEngine, Err: err}
		}
		return nil, nil //nolint:nilnil // there is no such image
	}
	var found []inspection
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) == 0 {
		return nil, fmt.Errorf("inspect image %s: unexpected answer of %s: %w", ref, e, err)
	}
	return &found[0], nil
}

// start runs a privileged container that does nothing, until remove is called. An image that is made of it has
// [stopSignal]. Its folder /build is not on an overlay file system, and no part of that image.
func (e engine) start(ctx context.Context, ref string) (id string, remove func(), err error) {
	id, err = e.run(ctx, nil, "run", "--detach", "--privileged", "--network=none", "--stop-signal="+stopSignal,
		"--mount=type=volume,destination=/build", "--entrypoint=sleep", ref, "infinity")
	if err != nil {
		return "", nil, err
	}
	return id, func() { e.release(ctx, "rm", "--force", "--volumes", id) }, nil
}

// release cleans up, also when ctx has ended.
func (e engine) release(ctx context.Context, args ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = e.run(ctx, nil, args...)
}

// exec runs a command in a container, with in as its standard input, and closes that.
func (e engine) exec(ctx context.Context, id string, in io.ReadCloser, command ...string) error {
	_, err := e.run(ctx, in, append([]string{"exec", "--interactive", id}, command...)...)
	return errors.Join(err, in.Close())
}
