package nodeimage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/lock"
)

const (
	// suite is the Debian release of the node: its systemd 252 still starts on a host with cgroup v1.
	suite = "bookworm"
	// arch is the architecture of the images: a node runs on the machine at hand.
	arch = runtime.GOARCH
)

// packages lists the Debian packages of the node.
func packages() []string { return strings.Fields(string(recipeFile("packages.txt"))) }

// rootfsPath is where the root file system made of today's package list is kept.
func rootfsPath(cacheDir string) string {
	hash := sha256.New()
	fmt.Fprintln(hash, suite, arch, packages())
	hash.Write(recipeFile("rootfs.sh"))
	return filepath.Join(cacheDir, "rootfs", fmt.Sprintf("%s-%.6x.tar", suite, hash.Sum(nil)))
}

// buildRootfs returns the path of the root file system as a tar file, and makes it first when it is not there.
func buildRootfs(ctx context.Context, cacheDir string, log func(string)) (string, error) {
	out := rootfsPath(cacheDir)
	unlock, err := lock.Wait(ctx, out+".lock")
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if _, err := exec.LookPath("debootstrap"); err != nil && !fileExists("/usr/sbin/debootstrap") {
		return "", &clusters.Problem{What: "debootstrap is not installed", Fix: "make setup"}
	}
	log(fmt.Sprintf("installing %d packages of Debian %s with debootstrap, about one minute", len(packages()), suite))
	err = replaceFile(out, func(tmp string) error {
		script := strings.NewReader(string(recipeFile("rootfs.sh")))
		command := asRoot("bash", "-s", "--", suite, strings.Join(packages(), ","), tmp)
		_, err := run(ctx, script, command[0], command[1:]...)
		return err
	})
	if err != nil {
		return "", fmt.Errorf("install Debian packages: %w", err)
	}
	prune(filepath.Dir(out), out)
	return out, nil
}

// unusedTime is how long a root file system of another recipe is kept for a checkout that may still want it.
const unusedTime = 7 * 24 * time.Hour

// prune removes old root file systems from dir, except keep. One that cannot be removed does no harm.
func prune(dir, keep string) {
	names, _ := filepath.Glob(filepath.Join(dir, "*.tar"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil && name != keep && time.Since(info.ModTime()) > unusedTime {
			_ = os.Remove(name)
			_ = os.Remove(name + ".lock")
		}
	}
}

// asRoot puts sudo before a command when this process is not root.
func asRoot(command ...string) []string {
	if os.Geteuid() == 0 {
		return command
	}
	return append([]string{"sudo"}, command...)
}

func fileExists(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// replaceFile writes a file through a temporary one, so that nobody ever sees half of it.
func replaceFile(name string, write func(tmp string) error) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	dir, err := os.MkdirTemp(filepath.Dir(name), "writing-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tmp := filepath.Join(dir, filepath.Base(name))
	if err := write(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, name)
}

// importRootfs gives the engine a root file system as an image without a name, and returns its id. release takes the
// image away, unless it has become a part of another one.
func (e engine) importRootfs(ctx context.Context, rootfs string) (id string, release func(), err error) {
	if id, err = e.run(ctx, nil, "import", rootfs); err != nil {
		return "", nil, err
	}
	return id, func() { e.release(ctx, "image", "rm", id) }, nil
}

// writePart writes a tar file with what the image of memcached, or that of kube-proxy, needs of the root file system that
// was imported: see recipe/parts.sh.
func (e engine) writePart(ctx context.Context, system, part, file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	script := bytes.NewReader(recipeFile("parts.sh"))
	err = runTo(ctx, out, script, string(e), "run", "--rm", "--interactive", "--network=none", system, "bash", "-s", "--", part)
	return errors.Join(err, out.Close())
}
