package enginetest

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters/components"
)

// engine is one that scripts/engine.sh started in a folder.
type engine struct {
	t    *testing.T
	root string // the checkout
	dir  string
	host string // DOCKER_HOST
}

// newEngine starts a private engine, which is stopped when the test has ended.
func newEngine(t *testing.T) *engine {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	//nolint:usetesting // t.TempDir is too long for sockets, and cannot remove what belongs to root
	dir, err := os.MkdirTemp("", "engine-")
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{t: t, root: root, dir: dir}
	t.Cleanup(func() {
		e.script("stop")
		e.asRoot("rm", "-rf", dir)
	})
	e.start()
	return e
}

func (e *engine) start() {
	e.t.Helper()
	host, ok := strings.CutPrefix(e.script("start"), "DOCKER_HOST=")
	if !ok {
		e.t.Fatalf("start printed %q, want DOCKER_HOST=...", host)
	}
	e.host = host
}

// script runs engine.sh for this engine and returns what it printed.
func (e *engine) script(command string) string {
	e.t.Helper()
	return e.asRoot(filepath.Join(e.root, "scripts", "engine.sh"), command, "--private", e.dir)
}

func (e *engine) docker(args ...string) string {
	e.t.Helper()
	return e.asRoot("docker", append([]string{"-H", e.host}, args...)...)
}

func (e *engine) asRoot(name string, args ...string) string {
	e.t.Helper()
	out, err := asRoot(nil, name, args...)
	if err != nil {
		e.t.Fatal(err)
	}
	return out
}

// asRoot uses a context of its own, because it is needed after the test's has ended too.
func asRoot(stdin *bytes.Buffer, name string, args ...string) (string, error) {
	const limit = 2 * time.Minute
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	command := append([]string{name}, args...)
	if os.Geteuid() != 0 {
		command = append([]string{"sudo"}, command...)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if stdin != nil {
		cmd.Stdin = stdin
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, &stderr)
	}
	return strings.TrimSpace(stdout.String()), nil
}

// runPause starts a privileged container on a network of its own, which is what a kind node is.
func (e *engine) runPause() {
	e.t.Helper()
	cache := e.t.TempDir()
	programs, err := components.Build(e.t.Context(), e.root, cache, "pause")
	if err != nil {
		e.t.Fatal(err)
	}
	program, err := os.ReadFile(programs["pause"])
	if err != nil {
		e.t.Fatal(err)
	}
	var image bytes.Buffer
	w := tar.NewWriter(&image)
	header := &tar.Header{Name: "pause", Mode: 0o755, Size: int64(len(program)), Typeflag: tar.TypeReg}
	if err := w.WriteHeader(header); err != nil {
		e.t.Fatal(err)
	}
	if _, err := w.Write(program); err != nil {
		e.t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		e.t.Fatal(err)
	}
	if _, err := asRoot(&image, "docker", "-H", e.host, "import", "-", "pause"); err != nil {
		e.t.Fatal(err)
	}
	e.docker("network", "create", "pods")
	e.docker("run", "--detach", "--privileged", "--network=pods", "--restart=always", "pause", "/pause")
}

func (e *engine) running() int { return len(strings.Fields(e.docker("ps", "-q"))) }

// leftovers lists processes, mounts, links and rules that belong to the engine.
func (e *engine) leftovers(number string) []string {
	e.t.Helper()
	var found []string
	for _, look := range []struct{ what, command, sign string }{
		{"process", "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null", e.dir + "/"},
		{"mount", "cat /proc/self/mountinfo", e.dir + "/"},
		{"address", "ip -o address", " 10." + number + "."},
		{"link", "ip -o link", " lab" + number + ":"},
		{"rule", "iptables-save", " 10." + number + "."},
	} {
		for line := range strings.Lines(e.asRoot("sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; "+look.command)) {
			if strings.Contains(line, look.sign) {
				found = append(found, look.what+": "+strings.TrimSpace(line))
			}
		}
	}
	return found
}

// mainLinks are the bridges of the machine's own engine.
func mainLinks() bool {
	_, err := os.Stat("/sys/class/net/docker0")
	return err == nil
}

func TestAPrivateEngineIsSeparateAndLeavesNothing(t *testing.T) {
	hadBridge := mainLinks()
	e := newEngine(t)
	number := e.asRoot("cat", filepath.Join(e.dir, "number"))
	e.runPause()
	if n := e.running(); n != 1 {
		t.Fatalf("%d containers are running, want 1", n)
	}
	if len(e.leftovers(number)) == 0 {
		t.Error("the test cannot see what belongs to an engine")
	}

	// Killed, dockerd leaves containerd, shims and containers behind; the next one finds them.
	e.asRoot("sh", "-c", "kill -KILL $(cat "+e.dir+"/dockerd.pid)")
	e.start()
	if n := e.running(); n != 1 {
		t.Errorf("%d containers are running after a new start, want 1", n)
	}

	// Stopping works on what a killed one left, too.
	e.asRoot("sh", "-c", "kill -KILL $(cat "+e.dir+"/dockerd.pid)")
	e.script("stop")
	if left := e.leftovers(number); len(left) > 0 {
		t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
	}
	if mainLinks() != hadBridge {
		t.Error("the bridge docker0 of the machine's own engine was touched")
	}
}

func TestStoppedContainersAndNetworksDoNotComeBack(t *testing.T) {
	e := newEngine(t)
	e.runPause()
	e.script("stop")
	e.start()
	if n := e.running(); n != 0 {
		t.Errorf("%d containers came back", n)
	}
	if networks := e.docker("network", "ls", "-q", "--filter", "name=pods"); networks != "" {
		t.Errorf("network %s came back", networks)
	}
}
