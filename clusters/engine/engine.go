// Package engine talks to container engines by their command lines.
package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Names are the container engines that kind knows, in the order in which they are tried.
func Names() []string { return []string{"docker", "podman", "nerdctl"} }

// Timeout bounds a question to an engine. One that is alive answers within a second, on a machine under load within ten;
// one that hangs never does.
const Timeout = 30 * time.Second

// ErrTimeout is the cause of a context that ended because of [Timeout].
var ErrTimeout = fmt.Errorf("no answer within %v", Timeout)

// Detect returns the first engine that answers. A client without a daemon behind it, which is common, does not count. The
// error says why each installed engine was passed over.
func Detect(ctx context.Context) (string, error) {
	var errs []error
	for _, name := range Names() {
		if _, err := exec.LookPath(name); err != nil {
			continue
		}
		err := Ping(ctx, name)
		if err == nil {
			return name, nil
		}
		errs = append(errs, err)
	}
	if len(errs) == 0 {
		return "", fmt.Errorf("none of %s is installed", strings.Join(Names(), ", "))
	}
	return "", errors.Join(errs...)
}

// Ping asks the engine of that name for its version. The error carries what the engine's client printed.
func Ping(ctx context.Context, name string) error {
	args := []string{"version", "--format", "{{.Server.Version}}"}
	if name == "podman" {
		// Podman has no server on Linux; info fails when it could not work.
		args = []string{"info", "--format", "{{.Version.Version}}"}
	}
	if _, err := Ask(ctx, name, args...); err != nil {
		return fmt.Errorf("container engine %s does not answer: %w", name, err)
	}
	return nil
}

// Ask is [Run] with [Timeout].
func Ask(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, Timeout, ErrTimeout)
	defer cancel()
	return Run(ctx, name, args...)
}

// endDelay is what a command that was cancelled has to clean up.
const endDelay = 20 * time.Second

// Run runs a command, such as an engine's, and returns what it printed. The error has the last lines of its standard error.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = endDelay
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(stdout.String()), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if text := strings.TrimSpace(stderr.String()); text != "" {
		const keep = 3
		lines := strings.Split(text, "\n")
		err = fmt.Errorf("%w: %s", err, strings.Join(lines[max(0, len(lines)-keep):], "; "))
	}
	return "", fmt.Errorf("run %s %s: %w", name, args[0], err)
}

// Endpoint is what the environment says about where the engine is, "" for its default place.
func Endpoint(name string) string {
	variables := map[string][]string{
		"docker":  {"DOCKER_HOST", "DOCKER_CONTEXT"},
		"podman":  {"CONTAINER_HOST", "CONTAINER_CONNECTION"},
		"nerdctl": {"CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE"},
	}
	for _, variable := range variables[name] {
		if value := os.Getenv(variable); value != "" {
			return value
		}
	}
	return ""
}

// Image is what an engine says about an image.
type Image struct {
	ID     string `json:"Id"`
	Config struct {
		Entrypoint []string
		Labels     map[string]string
	}
}

// Inspect returns nil when the engine has no image of that name.
func Inspect(ctx context.Context, name, ref string) (*Image, error) {
	out, err := Ask(ctx, name, "image", "inspect", ref)
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, Ping(ctx, name) // an engine that is down fails like an image that is missing
	}
	var found []Image
	if err == nil {
		err = json.Unmarshal([]byte(out), &found)
	}
	if err != nil || len(found) == 0 {
		return nil, fmt.Errorf("inspect image %s: %d found: %w", ref, len(found), err)
	}
	return &found[0], nil
}
