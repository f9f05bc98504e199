package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strconv"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/engine"
)

// checkEngine looks for a container engine that answers, and then at what clusters need of it.
func (r *run) checkEngine(ctx context.Context) {
	const name = "container engine"
	engines, lack := engine.Names(), Error
	if r.Engine != "" {
		engines = []string{r.Engine}
	}
	if r.Instead != nil {
		lack = Warning
	}
	detail := "none is installed (" + strings.Join(engines, ", ") + ")"
	for _, command := range engines {
		format := "{{.ServerVersion}}"
		if command == "podman" {
			format = "{{.Version.Version}}"
		}
		version, err := engine.Ask(ctx, command, "info", "--format", format)
		switch {
		case errors.Is(err, exec.ErrNotFound):
			continue
		case err != nil && strings.Contains(err.Error(), "permission denied"):
			r.add(lack, name, "sudo usermod -aG docker $USER, then log in again", "%s runs, but this user may not use it", command)
			return
		case err != nil || version == "":
			detail = fmt.Sprintf("%s is installed, but does not answer: %v", command, err)
			continue
		default:
			r.engine = command
			r.add(Info, name, "", "%s %s answers", command, version)
			r.checkInotify(r.checkNodeImage(ctx))
			return
		}
	}
	r.add(lack, name, cmp.Or(r.Commands.Setup, "install and start Docker: https://docs.docker.com/engine/install"), "%s", detail)
	r.checkInotify(false)
}

// checkNodeImage looks for a node image, and starts a privileged container of it, as each node is. exhausted means that
// root gets no inotify instance any more.
func (r *run) checkNodeImage(ctx context.Context) (exhausted bool) {
	const name = "node image"
	if r.NodeImage == nil {
		return false
	}
	fix := cmp.Or(r.Commands.NodeImage, r.engine+" pull "+clusters.DefaultNodeImage)
	image, stale, err := r.NodeImage(ctx, r.engine)
	switch {
	case err != nil:
		r.add(Error, name, fix, "%v", err)
		return false
	case image == "":
		r.add(Warning, name, fix, "none on this machine: the first cluster has to pull or build one")
		return false
	case stale:
		r.add(Warning, name, fix, "an older version of the build made %s", image)
	default:
		r.add(Info, name, "", "%s", image)
	}
	// tail complains when it gets no inotify instance, and works without one.
	out, err := engine.Ask(ctx, r.engine, "run", "--rm", "--privileged", "--network=none", "--entrypoint=/bin/sh", image,
		"-c", "timeout 0.2 tail -n 0 -f /proc/version 2>&1; :")
	if err != nil {
		r.add(Error, "privileged", cmp.Or(r.Commands.Instead, "use an engine that runs as root"), "the engine starts no privileged container: %v", err)
		return false
	}
	r.add(Info, "privileged", "", "privileged containers start")
	return strings.Contains(out, "inotify")
}

// inotifyPerCluster are the inotify instances of a kind cluster with one node: systemd, containerd with its shims, kubelet,
// kube-proxy. With the kernel's default of 128, the fourth cluster works and the fifth does not.
const inotifyPerCluster = 31

// InotifyFor is how many inotify instances the kernel has to grant to root for n kind clusters side by side: theirs, and
// as many as one more for the machine's own programs.
func InotifyFor(n int) uint64 { return uint64(n+1) * inotifyPerCluster }

// checkInotify asks this machine's kernel. Nothing is known of that of an engine's virtual machine.
func (r *run) checkInotify(exhausted bool) {
	const sysctl = "sudo sysctl -w fs.inotify.max_user_instances="
	var n uint64
	data, _ := fs.ReadFile(r.files, "proc/sys/fs/inotify/max_user_instances")
	_, err := fmt.Sscan(string(data), &n)
	switch {
	case err != nil:
	case exhausted:
		r.add(Error, "inotify", sysctl+strconv.FormatUint(2*n, 10), "all %d instances are in use, and no node can start", n)
	case n < 512:
		r.add(Warning, "inotify", cmp.Or(r.Commands.Setup, sysctl+"8192"), "max_user_instances is %d, enough for %d clusters side by side (8192 is enough for all)",
			n, max(n/inotifyPerCluster, 1)-1)
	default:
		r.add(Info, "inotify", "", "%d instances", n)
	}
}
