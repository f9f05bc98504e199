package doctor

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
)

const (
	fixSetup = "make setup"
	// fixEngine goes without an engine: somebody may need the one that does not cope.
	fixEngine = "set CLUSTER=embedded"
)

// findEngine looks for a container engine that answers. A client without a
// daemon behind it is common, and so is a daemon that this user may not talk to.
func (e *examination) findEngine(ctx context.Context) {
	const name = "container engine"
	candidates := clusters.Engines()
	if e.Engine != "" {
		candidates = []string{e.Engine}
	}
	var silent []string
	for _, engine := range candidates {
		if _, err := e.look(engine); err != nil {
			continue
		}
		version, err := e.run(ctx, engine, engineVersion(engine)...)
		if err == nil {
			e.engine = engine
			e.ok(name, "%s %s answers", engine, version)
			return
		}
		if strings.Contains(err.Error(), "permission denied") {
			e.bad(e.withoutEngine(), name, "sudo usermod -aG docker $USER, then log in again",
				"%s runs, but this user may not talk to it", engine)
			return
		}
		silent = append(silent, fmt.Sprintf("%s is installed, but does not answer (%s)", engine, firstLine(err.Error())))
	}
	if len(silent) == 0 {
		silent = []string{"none is installed (" + strings.Join(candidates, ", ") + ")"}
	}
	e.bad(e.withoutEngine(), name, fixSetup, "%s; the node image is fetched or built with it", strings.Join(silent, "; "))
}

// withoutEngine is what the lack of an engine means.
func (e *examination) withoutEngine() Severity {
	if e.Embedded == nil {
		return Stops
	}
	return Warns
}

// checkEmbedded looks at what labs run on where there is no engine.
func (e *examination) checkEmbedded(ctx context.Context) {
	const name = "control plane"
	if e.Embedded == nil {
		return
	}
	switch missing, err := e.Embedded(ctx); {
	case err != nil:
		e.bad(Stops, name, "", "the embedded one cannot be built: %s", firstLine(err.Error()))
	case len(missing) > 0:
		e.bad(Tells, name, "", "embedded; the first lab builds it, which takes some minutes (%s)", strings.Join(missing, ", "))
	default:
		e.ok(name, "embedded, and built")
	}
}

// engineVersion asks for the version of the daemon; podman has none on Linux, so
// it is asked for what it could not tell without working.
func engineVersion(engine string) []string {
	if engine == "podman" {
		return []string{"info", "--format", "{{.Version.Version}}"}
	}
	return []string{"version", "--format", "{{.Server.Version}}"}
}

// checkEngine looks at what the engine says about itself.
func (e *examination) checkEngine(ctx context.Context) {
	format := "{{.CgroupVersion}} {{.KernelVersion}} {{.SecurityOptions}}"
	if e.engine == "podman" {
		format = "{{.Host.CgroupsVersion}} {{.Host.Kernel}} {{if .Host.Security.Rootless}}name=rootless{{end}}"
	}
	out, err := e.run(ctx, e.engine, "info", "--format", format)
	fields := strings.Fields(out)
	if err != nil || len(fields) < 2 {
		e.bad(Tells, "cgroup", "", "%s does not say which version it uses", e.engine)
		return
	}
	release, _ := e.text("proc/sys/kernel/osrelease")
	e.local = e.os == "linux" && release == fields[1]
	rootless := strings.Contains(out, "rootless")
	switch version := strings.TrimPrefix(fields[0], "v"); {
	case version == "2":
		e.ok("cgroup", "version 2")
	case rootless:
		e.bad(Stops, "cgroup", "start a rootful engine, or boot with systemd.unified_cgroup_hierarchy=1",
			"version 1, on which a rootless engine cannot run a node")
	default:
		e.bad(Tells, "cgroup", "", "version 1, which works here; Kubernetes is about to drop it")
	}
}

// checkNodeImage looks for a node image and tries what every node needs: a
// privileged container.
func (e *examination) checkNodeImage(ctx context.Context) {
	const name = "node image"
	if e.NodeImage == nil {
		return
	}
	image, err := e.NodeImage(ctx, e.engine)
	e.image = image.Ref
	switch {
	case err != nil:
		e.bad(Stops, name, "make node-image", "%s", firstLine(err.Error()))
	case image.Stale:
		e.bad(Warns, name, "make node-image", "%s was built from an older recipe than this checkout's", image.Ref)
		e.inspect(ctx)
	case image.Ref != "":
		e.ok(name, "%s", image.Ref)
		e.inspect(ctx)
	case e.Pullable == "":
		e.bad(Stops, name, "make node-image", "there is none on this machine")
	default:
		if err := e.pull(ctx, e.Pullable); err != nil {
			e.bad(Stops, name, "make node-image", "there is none on this machine, and no registry to pull one from")
			return
		}
		short, _, _ := strings.Cut(e.Pullable, "@")
		e.ok(name, "none yet; the first lab pulls %s", short)
	}
}

// inside is what a privileged container saw: the kernel, disk and clock that
// matter. They are not this machine's where the engine has a virtual machine.
type inside struct {
	instances, watches, memory, disk uint64
	// exhausted says that root can have no inotify instance any more.
	exhausted bool
	clock     time.Time
	// asked is the time here when the container said its own.
	asked time.Time
}

// insideScript prints one number per line; "-" where there is none. tail says so
// when it cannot be told of changes, and then looks again and again.
const insideScript = `n() { cat "$1" 2>/dev/null || echo -; }
n /proc/sys/fs/inotify/max_user_instances
n /proc/sys/fs/inotify/max_user_watches
awk '/^MemAvailable/ {print $2 * 1024}' /proc/meminfo
df --output=avail --block-size=1 / | tail -n 1
timeout 0.2 tail -n 0 -f /proc/version 2>&1 | grep -c inotify
date +%s`

// inspect runs a privileged container of the node image. Its success answers
// whether there can be any; what it prints answers more.
func (e *examination) inspect(ctx context.Context) {
	const name = "privileged"
	out, err := e.run(ctx, e.engine, "run", "--rm", "--privileged", "--network=none",
		"--entrypoint", "/bin/sh", e.image, "-c", insideScript)
	if err != nil {
		e.bad(Stops, name, fixEngine, "the engine cannot start a privileged container: %s", firstLine(err.Error()))
		return
	}
	e.ok(name, "privileged containers start")
	lines := strings.Fields(out)
	var n [6]uint64
	if len(lines) != len(n) {
		return
	}
	for i, line := range lines {
		n[i], _ = strconv.ParseUint(line, 10, 64) // 0 means not known
	}
	e.inside = &inside{
		instances: n[0], watches: n[1], memory: n[2], disk: n[3], exhausted: n[4] > 0,
		clock: time.Unix(int64(n[5]), 0), asked: e.now(),
	}
}
