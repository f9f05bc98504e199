package nodeimage

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/engine"
	"github.com/example/operator-lab/clusters/internal/layout"
	"github.com/example/operator-lab/clusters/internal/lock"
)

const (
	// suite is the Debian release of the node: its systemd 252 still starts on a host with cgroup v1.
	suite = "bookworm"
	// packages are those of the release that every node has.
	packages = "systemd,systemd-sysv,conntrack,iptables,nftables,iproute2,ethtool,util-linux,mount,kmod,libseccomp2,socat," +
		"ca-certificates,curl,jq,procps,runc"
	// kindVersion is the module that the node's own scripts come from, and kindSum its checksum in go.sum.
	kindVersion = "v0.33.0"
	kindSum     = "h1:AjvDv3vOygb/VKLVQW87lfktIBzkxR8Ump9DjxC8+Lk="
)

// programs are the components that every node has.
func programs() []string {
	return []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubeadm", "kubectl", "etcd", "coredns",
		"containerd", "containerd-shim-runc-v2", "ctr", "host-local", "loopback", "portmap", "ptp", "pause",
	}
}

// inputs, the programs and the extra images decide what is in the image.
//
//go:embed files build.go
var inputs embed.FS

// inputsDigest names the image that Build makes.
func (o Options) inputsDigest() (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, KubernetesVersion, runtime.GOARCH, o.Images)
	w := tar.NewWriter(hash)
	if err := errors.Join(w.AddFS(inputs), w.Close()); err != nil {
		return "", err
	}
	components.Digest(hash, programs()...)
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// Build makes the node image, unless the engine has it already, and returns its name. It removes the image that it
// replaces. A first build takes about ten minutes on two cores, most of them for compiling. It needs an engine that runs
// privileged containers, debootstrap, and root for debootstrap; what the machine lacks is a [*clusters.Problem]. Of two
// processes that build at once, one waits for the other.
func Build(ctx context.Context, o Options) (ref string, err error) {
	unlock, err := lock.Wait(ctx, filepath.Join(o.CacheDir, "node-image.lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	digest, digestErr := o.inputsDigest()
	old, err := o.inspect(ctx, localRef)
	if err := errors.Join(digestErr, err); err != nil {
		return "", err
	}
	if old != nil && old.Config.Labels[layout.NodeImageLabel] == digest {
		return localRef, nil
	}
	if err := o.build(ctx, digest); err != nil {
		return "", fmt.Errorf("build node image: %w", err)
	}
	if old != nil {
		o.release(ctx, "image", "rm", old.ID) // the engine keeps it while a cluster runs on it
	}
	return localRef, nil
}

// build makes a container of Debian's root file system, has provision.sh make a node of it, and keeps that as the image.
// A Dockerfile cannot do that: only a privileged process can unpack images.
func (o Options) build(ctx context.Context, digest string) error {
	dir, err := os.MkdirTemp(o.CacheDir, "node-image-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := os.CopyFS(dir, inputs); err != nil {
		return err
	}
	rootfs, err := o.debootstrap(ctx, dir)
	if err != nil {
		return err
	}
	parts, err := (&components.Builder{CacheDir: o.CacheDir, Log: o.Log}).Build(ctx, programs()...)
	if err != nil {
		return err
	}
	if parts["kind"], err = kindFiles(ctx); err != nil {
		return err
	}
	parts["files"] = filepath.Join(dir, "files")
	o.log("assembling " + localRef)
	// With names that are known beforehand, an interrupted command leaves nothing.
	container := filepath.Base(dir)
	system := "operator-lab.local/debian:" + container
	defer o.release(ctx, "image", "rm", system)
	defer o.release(ctx, "rm", "--force", "--volumes", container)
	steps := [][]string{
		{"import", rootfs, system},
		{"run", "--detach", "--name", container, "--privileged", "--network=none", "--stop-signal=SIGRTMIN+3",
			"--mount=type=volume,destination=/build", "--entrypoint=sleep", system, "infinity"},
	}
	for name, path := range parts {
		steps = append(steps, []string{"cp", path, container + ":/build/" + name})
	}
	provision, refs := []string{"exec", container, "bash", "/build/files/provision.sh", KubernetesVersion}, []string{}
	for _, image := range o.Images {
		provision = append(provision, image.Ref, image.Package, image.Program)
		refs = append(refs, image.Ref)
	}
	steps = append(steps, provision, []string{"commit",
		"--change", "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"--change", "ENV container=docker", // for systemd
		"--change", fmt.Sprintf("ENTRYPOINT [%q, %q]", entrypoint, systemd),
		"--change", "LABEL " + layout.NodeImageLabel + "=" + digest,
		"--change", fmt.Sprintf("LABEL %s=%q", imagesLabel, strings.Join(refs, " ")),
		container, localRef,
	})
	for _, step := range steps {
		if _, err := o.engine(ctx, step...); err != nil {
			return err
		}
	}
	return nil
}

// debootstrap makes a tar file of Debian's root file system, in a folder with the inputs.
func (o Options) debootstrap(ctx context.Context, dir string) (rootfs string, err error) {
	_, err = exec.LookPath("debootstrap")
	if _, sbinErr := os.Stat("/usr/sbin/debootstrap"); err != nil && sbinErr != nil {
		return "", &clusters.Problem{What: "debootstrap is not installed", Fix: "sudo apt-get install debootstrap debian-archive-keyring"}
	}
	rootfs = filepath.Join(dir, "rootfs.tar")
	list := packages
	for _, image := range o.Images {
		list += "," + image.Package
	}
	o.log("installing Debian " + suite + " with debootstrap, about one minute")
	command := []string{"bash", filepath.Join(dir, "files", "rootfs.sh"), suite, list, rootfs}
	if os.Geteuid() != 0 {
		command = append([]string{"sudo"}, command...)
	}
	if _, err := engine.Run(ctx, command[0], command[1:]...); err != nil {
		return "", fmt.Errorf("install Debian packages: %w", err)
	}
	return rootfs, nil
}

// kindFiles is the folder with kind's own files of a node, in the module cache. The checksum stands here, because an
// importer's go.sum may have that of another version.
func kindFiles(ctx context.Context) (string, error) {
	module := "sigs.k8s.io/kind@" + kindVersion
	out, err := engine.Run(ctx, "env", "GOWORK=off", "GOFLAGS=", "GONOSUMDB=sigs.k8s.io/kind", "go", "mod", "download", "-json", module)
	var found struct{ Dir, Sum string }
	if err == nil {
		err = json.Unmarshal([]byte(out), &found)
	}
	if err == nil && found.Sum != kindSum {
		err = fmt.Errorf("its checksum is %s, want %s", found.Sum, kindSum)
	}
	if err != nil {
		return "", fmt.Errorf("download %s: %w", module, err)
	}
	return filepath.Join(found.Dir, "images", "base", "files"), nil
}
