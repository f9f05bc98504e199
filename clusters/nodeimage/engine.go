package nodeimage

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/clusters"
	containerengine "github.com/example/operator-lab/clusters/engine"
)

const (
	releaseTimeout = 30 * time.Second // for the removal of what an interrupted build leaves in the engine
	endDelay       = 20 * time.Second // for the clean-up of a cancelled command
	pullTimeout    = 15 * time.Minute // for about 400 MB over a slow line
)

// run runs a command and returns its trimmed output. The error has the last lines of its error output.
func run(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) } // scripts clean up after themselves
	cmd.WaitDelay = endDelay
	err := cmd.Run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		const keep = 3
		lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
		return "", fmt.Errorf("run %s %s: %w: %s", name, args[0], err, strings.Join(lines[max(0, len(lines)-keep):], "; "))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// engine runs the container engine's command line and returns what it printed.
func (o Options) engine(ctx context.Context, args ...string) (string, error) {
	return run(ctx, cmp.Or(o.Engine, "docker"), args...)
}

// release cleans up, also when ctx has ended.
func (o Options) release(ctx context.Context, args ...string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = o.engine(ctx, args...)
}

// inspection is what an engine says about an image.
type inspection struct {
	ID     string `json:"Id"`
	Config struct {
		Entrypoint []string
		Labels     map[string]string
	}
}

// inspect returns nil when the engine has no image of that name.
func (o Options) inspect(ctx context.Context, ref string) (*inspection, error) {
	out, err := o.engine(ctx, "image", "inspect", ref)
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		// An engine that is down fails like an image that is missing.
		if err := containerengine.Ping(ctx, cmp.Or(o.Engine, "docker")); err != nil {
			return nil, &clusters.Problem{What: "no container engine", Reason: clusters.ErrNoEngine, Err: err}
		}
		return nil, nil //nolint:nilnil // there is no such image
	}
	var found []inspection
	if err == nil {
		err = json.Unmarshal([]byte(out), &found)
	}
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("inspect image %s: %d found: %w", ref, len(found), err)
	}
	return &found[0], nil
}

// pull inspects an image, and pulls it first when it is not on this machine. It returns nil when it cannot be pulled.
func (o Options) pull(ctx context.Context, ref string) (*inspection, error) {
	found, err := o.inspect(ctx, ref)
	if err != nil || found != nil {
		return found, err
	}
	pullCtx, cancel := context.WithTimeout(ctx, pullTimeout)
	defer cancel()
	o.log("pulling " + ref + ": node images have about 400 MB, which take one minute at 50 Mbit/s and five at 10")
	if _, err := o.engine(pullCtx, "pull", "--quiet", ref); err != nil {
		return nil, ctx.Err()
	}
	return o.inspect(ctx, ref)
}

func (o Options) log(line string) {
	if o.Log != nil {
		o.Log(line)
	}
}
