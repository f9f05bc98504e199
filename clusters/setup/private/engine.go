// Package private starts container engines of a test's own, for tests that break them. It needs Linux,
// and root or sudo.
package private

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// commandLimit bounds one command. Copying a node image takes the longest, about 20 s on a busy machine.
const commandLimit = 3 * time.Minute

// Engine is a container engine that scripts/engine.sh starts in a folder of its own.
type Engine struct {
	// Dir holds everything that belongs to the engine, its data included.
	Dir string
	// Host is the engine's DOCKER_HOST.
	Host string

	t    *testing.T
	root string // the checkout
}

// New prepares an engine of the checkout at root, which [Engine.Start] starts. Whatever became of it, it
// is stopped and removed when the test has ended.
func New(t *testing.T, root string) *Engine {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	//nolint:usetesting // t.TempDir is too long for sockets, and cannot remove what belongs to root
	dir, err := os.MkdirTemp("", "engine-")
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Dir: dir, t: t, root: root}
	t.Cleanup(func() {
		e.Stop()
		_, _ = run("umount", "-l", e.Data()) // unless stopping did
		e.AsRoot("rm", "-rf", dir)
	})
	return e
}

// Data is the folder in which the engine keeps images and containers.
func (e *Engine) Data() string { return filepath.Join(e.Dir, "data") }

// Limit gives the engine a disk of its own in memory, of a size such as "2500m". Call it before Start.
func (e *Engine) Limit(size string) {
	e.t.Helper()
	e.AsRoot("mkdir", "-p", e.Data())
	e.AsRoot("mount", "-t", "tmpfs", "-o", "size="+size, "tmpfs", e.Data())
}

// Fill uses up what is left of the disk that [Engine.Limit] gave, but for some megabytes.
func (e *Engine) Fill() {
	e.t.Helper()
	e.AsRoot("sh", "-c", "dd if=/dev/zero of="+e.Data()+"/filler bs=1M 2>/dev/null; truncate -s -4M "+e.Data()+"/filler")
}

// Empty takes away what Fill filled.
func (e *Engine) Empty() {
	e.t.Helper()
	e.AsRoot("rm", "-f", e.Data()+"/filler")
}

// Start starts the engine, after it was stopped or killed too.
func (e *Engine) Start() {
	e.t.Helper()
	host, ok := strings.CutPrefix(e.script("start"), "DOCKER_HOST=")
	if !ok {
		e.t.Fatalf("start printed %q, want DOCKER_HOST=...", host)
	}
	e.Host = host
}

// Stop stops the engine and removes its containers and networks.
func (e *Engine) Stop() {
	e.t.Helper()
	e.script("stop")
}

// Signal sends a signal such as KILL to the engine's daemon alone.
func (e *Engine) Signal(name string) {
	e.t.Helper()
	e.AsRoot("sh", "-c", "kill -"+name+" $(cat "+e.Dir+"/dockerd.pid)")
}

// AwaitEnd returns when the daemon that got a signal has ended. An orderly end takes as long as its
// containers do.
func (e *Engine) AwaitEnd() {
	e.t.Helper()
	e.AsRoot("timeout", "60", "sh", "-c", "while pid=$(cat "+e.Dir+"/dockerd.pid 2>/dev/null) && kill -0 $pid 2>/dev/null; do sleep 0.1; done")
}

func (e *Engine) script(command string) string {
	e.t.Helper()
	return e.AsRoot(filepath.Join(e.root, "scripts", "engine.sh"), command, "--private", e.Dir)
}

// Docker runs a command of this engine's client and returns what it printed.
func (e *Engine) Docker(args ...string) string {
	e.t.Helper()
	out, err := e.TryDocker(args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// TryDocker is [Engine.Docker] for what the engine may refuse.
func (e *Engine) TryDocker(args ...string) (string, error) {
	return run("docker", append([]string{"-H", e.Host}, args...)...)
}

// Copy copies an image from the machine's own engine.
func (e *Engine) Copy(image string) {
	e.t.Helper()
	e.AsRoot("bash", "-c", fmt.Sprintf("set -o pipefail; env -u DOCKER_HOST docker save %s | docker -H %s load --quiet", image, e.Host))
}

// AsRoot runs a command as root, with sudo where that is needed, and returns what it printed.
func (e *Engine) AsRoot(name string, args ...string) string {
	e.t.Helper()
	out, err := run(name, args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// run uses a context of its own, because it is needed after the test's has ended too.
func run(name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), commandLimit)
	defer cancel()
	command := append([]string{name}, args...)
	if os.Geteuid() != 0 {
		command = append([]string{"sudo"}, command...)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, &stderr)
	}
	return strings.TrimSpace(stdout.String()), nil
}
