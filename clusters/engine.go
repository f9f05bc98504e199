package clusters

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

// Engines are the container engines that kind knows, in the order in which they
// are tried.
func Engines() []string { return []string{"docker", "podman", "nerdctl"} }

// engineTimeout bounds a question to a container engine. One that is alive
// answers within a second, on a machine under load within ten; one that hangs
// never does.
const engineTimeout = 30 * time.Second

// errNoAnswer is the cause of a context that ended because of engineTimeout.
var errNoAnswer = fmt.Errorf("no answer within %v", engineTimeout)

// ended is why ctx ended: what the caller did, or a timeout of ours that has a
// cause of its own.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return cause
	}
	return ctx.Err()
}

// DetectEngine returns the first container engine that answers. A client
// without a daemon behind it, which is common, does not count. The error is a
// *Problem that says why each installed engine was passed over.
func DetectEngine(ctx context.Context) (string, error) {
	var errs []error
	for _, engine := range Engines() {
		if _, err := exec.LookPath(engine); err != nil {
			continue
		}
		err := PingEngine(ctx, engine)
		if err == nil {
			return engine, nil
		}
		errs = append(errs, err)
	}
	if err := ctx.Err(); err != nil {
		return "", fmt.Errorf("look for a container engine: %w", err)
	}
	if len(errs) == 0 {
		return "", &Problem{
			What: "no container engine: none of " + strings.Join(Engines(), ", ") + " is installed",
			Fix:  fixEngine,
		}
	}
	return "", &Problem{What: "no container engine answers", Fix: fixEngine, Err: errors.Join(errs...)}
}

// PingEngine asks the engine of that name for its version. The error is a
// *Problem that carries what the engine's client printed.
func PingEngine(ctx context.Context, engine string) error {
	args := []string{"version", "--format", "{{.Server.Version}}"}
	if engine == "podman" {
		// Podman has no server on Linux; info fails when it could not work.
		args = []string{"info", "--format", "{{.Version.Version}}"}
	}
	if _, err := runEngine(ctx, engine, args...); err != nil {
		return problem(err, fixEngine, "container engine %s does not answer", engine)
	}
	return nil
}

// CountNodes is how many nodes of kind clusters run on the engine, whoever made them.
func CountNodes(ctx context.Context, engine string) (int, error) {
	out, err := runEngine(ctx, engine, "ps", "--quiet", "--filter", "label=io.x-k8s.kind.cluster")
	return len(strings.Fields(out)), err
}

// fixEngine brings up an engine.
const fixEngine = "make setup"

// runEngine asks the engine a question and returns what it printed. The error
// carries the last line of the client's standard error.
func runEngine(ctx context.Context, engine string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, engineTimeout, errNoAnswer)
	defer cancel()
	return commandEngine(ctx, engine, args...)
}

// commandEngine is runEngine for what may take long: only ctx bounds it.
func commandEngine(ctx context.Context, engine string, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, engine, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	// A grandchild that holds the pipes must not hold us.
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if err == nil {
		return strings.TrimSpace(stdout.String()), nil
	}
	if ctx.Err() != nil {
		err = ended(ctx)
	}
	if text := strings.TrimSpace(stderr.String()); text != "" {
		lines := strings.Split(text, "\n")
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return "", fmt.Errorf("run %s %s: %w", engine, args[0], err)
}

// engineEndpoint is what the environment says about where the engine is, "" for
// its default place.
func engineEndpoint(engine string) string {
	variables := map[string][]string{
		"docker":  {"DOCKER_HOST", "DOCKER_CONTEXT"},
		"podman":  {"CONTAINER_HOST", "CONTAINER_CONNECTION"},
		"nerdctl": {"CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE"},
	}
	for _, name := range variables[engine] {
		if value := os.Getenv(name); value != "" {
			return value
		}
	}
	return ""
}

// imageLabels are the labels of the image ref, as JSON, and whether the engine has it. A *Problem means that it could
// not be asked.
func imageLabels(ctx context.Context, engine, ref string) (labels string, present bool, err error) {
	labels, err = runEngine(ctx, engine, "image", "inspect", "--format", "{{json .Config.Labels}}", ref)
	if err == nil {
		return labels, true, nil
	}
	if pingErr := PingEngine(ctx, engine); pingErr != nil {
		return "", false, pingErr
	}
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return "", false, nil
	}
	return "", false, fmt.Errorf("look for image %s: %w", ref, err)
}
