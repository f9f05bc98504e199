// Package engine talks to container engines by their command lines.
package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
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

// Run runs a command of the engine and returns what it printed. The error carries the last line of its standard error.
func Run(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second // a grandchild may hold the pipes
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(stdout.String()), nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if text := strings.TrimSpace(stderr.String()); text != "" {
		err = fmt.Errorf("%w: %s", err, text[strings.LastIndex(text, "\n")+1:])
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

// ImageLabels are the labels of an image, as JSON, and whether the engine has it.
func ImageLabels(ctx context.Context, name, ref string) (labels string, present bool, err error) {
	labels, err = Ask(ctx, name, "image", "inspect", "--format", "{{json .Config.Labels}}", ref)
	if err == nil {
		return labels, true, nil
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return "", false, Ping(ctx, name) // an engine that is down fails like an image that is missing
	}
	return "", false, err
}
