package enginetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/setup/private"
)

// engine is one of this test's own.
type engine struct {
	*private.Engine
	t    *testing.T
	root string // the checkout
}

// newEngine starts a private engine, which is stopped when the test has ended.
func newEngine(t *testing.T) *engine {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	e := &engine{private.New(t, root), t, root}
	e.Start()
	return e
}

// runPause starts a privileged container on a network of its own, which is what a kind node is.
func (e *engine) runPause() {
	e.t.Helper()
	cache := e.t.TempDir()
	programs, err := (&components.Builder{Root: e.root, CacheDir: cache}).Build(e.t.Context(), "pause")
	if err != nil {
		e.t.Fatal(err)
	}
	const image = "operator-lab.local/pause:test"
	archive := filepath.Join(cache, "pause.tar")
	if err := clusters.WriteProgramImage(archive, image, programs["pause"]); err != nil {
		e.t.Fatal(err)
	}
	e.Docker("load", "--quiet", "--input", archive)
	e.Docker("network", "create", "pods")
	e.Docker("run", "--detach", "--privileged", "--network=pods", "--restart=always", image)
}

func (e *engine) running() int { return len(strings.Fields(e.Docker("ps", "-q"))) }

// leftovers lists processes, mounts, links and rules that belong to the engine.
func (e *engine) leftovers(number string) []string {
	e.t.Helper()
	var found []string
	for _, look := range []struct{ what, command, sign string }{
		{"process", "for p in /proc/[0-9]*; do tr '\\0' ' ' <$p/cmdline; echo; done 2>/dev/null", e.Dir + "/"},
		{"mount", "cat /proc/self/mountinfo", e.Dir + "/"},
		{"address", "ip -o address", " 10." + number + "."},
		{"link", "ip -o link", " lab" + number + ":"},
		{"rule", "iptables-save", " 10." + number + "."},
	} {
		for line := range strings.Lines(e.AsRoot("sh", "-c", "PATH=$PATH:/usr/sbin:/sbin; "+look.command)) {
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
	number := e.AsRoot("cat", filepath.Join(e.Dir, "number"))
	e.runPause()
	if n := e.running(); n != 1 {
		t.Fatalf("%d containers are running, want 1", n)
	}
	if len(e.leftovers(number)) == 0 {
		t.Error("the test cannot see what belongs to an engine")
	}

	// Killed, dockerd leaves containerd, shims and containers behind; the next one finds them.
	e.Signal("KILL")
	e.Start()
	if n := e.running(); n != 1 {
		t.Errorf("%d containers are running after a new start, want 1", n)
	}

	// Stopping works on what a killed one left, too.
	e.Signal("KILL")
	e.Stop()
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
	e.Stop()
	e.Start()
	if n := e.running(); n != 0 {
		t.Errorf("%d containers came back", n)
	}
	if networks := e.Docker("network", "ls", "-q", "--filter", "name=pods"); networks != "" {
		t.Errorf("network %s came back", networks)
	}
}
