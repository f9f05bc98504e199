package nodeimage

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// This file and the folder recipe decide what is in the images; both are part of the recipe's digest.

const searchPath = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// entrypoint is how every kind node starts.
func entrypoint() []string { return []string{"/usr/local/bin/entrypoint", "/sbin/init"} }

// nodeConfig is the configuration of the node image. systemd wants to know that it is in a container, and ends on
// SIGRTMIN+3.
func nodeConfig(labels map[string]string) v1.Config {
	return v1.Config{
		Env:        []string{searchPath, "container=docker"},
		Entrypoint: entrypoint(),
		StopSignal: "SIGRTMIN+3",
		Labels:     labels,
	}
}

// nodeFiles are the files of the node beside its packages: kind's own, taken from kind's module folder, our
// configuration, and the programs.
func nodeFiles(kindDir string, programs map[string]string) ([]entry, error) {
	entries, err := kindFiles(os.DirFS(filepath.Join(kindDir, "images", "base", "files")))
	if err != nil {
		return nil, fmt.Errorf("read kind's node files: %w", err)
	}
	entries = append(entries,
		text("kind/version", 0o644, []byte(KubernetesVersion)),
		text("kind/manifests/default-cni.yaml", 0o644, recipeFile("default-cni.yaml")),
		text("kind/manifests/default-storage.yaml", 0o644, recipeFile("default-storage.yaml")),
		text("etc/cni/net.d/10-lab.conflist", 0o644, recipeFile("10-lab.conflist")),
		folder("etc/kubernetes/manifests", 0o755),
	)
	for dir, names := range map[string][]string{
		"usr/local/bin": {"containerd", "containerd-shim-runc-v2", "ctr"},
		"usr/bin":       {"kubelet", "kubeadm", "kubectl"},
		"opt/cni/bin":   {"host-local", "loopback", "portmap", "ptp"},
	} {
		for _, name := range names {
			e, err := program(path.Join(dir, name), programs[name])
			if err != nil {
				return nil, fmt.Errorf("add %s to the node: %w", name, err)
			}
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// kindFiles are all files of the folder; scripts are in folders called bin.
func kindFiles(files fs.FS) ([]entry, error) {
	var entries []entry
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		mode := int64(0o644)
		if path.Base(path.Dir(name)) == "bin" {
			mode = 0o755
		}
		entries = append(entries, text(name, mode, data))
		return err
	})
	return entries, err
}

// componentImage is the image of one component: its program on PATH and nothing else, except for kube-proxy, which
// calls the programs of netfilter.
func componentImage(component, file string, system *rootfs) (v1.Image, error) {
	e, err := program("usr/local/bin/"+component, file)
	if err != nil {
		return nil, err
	}
	entries := []entry{e}
	if component == "kube-proxy" {
		netfilter, err := netfilterFiles(system)
		if err != nil {
			return nil, err
		}
		entries = append(entries, netfilter...)
	}
	files, err := packedLayer(entries)
	if err != nil {
		return nil, err
	}
	// kubeadm's manifests name the program, except that of coredns: it gives arguments only.
	return assemble(v1.Config{Env: []string{searchPath}, Entrypoint: []string{"/usr/local/bin/" + component}}, files)
}

// netfilterFiles are iptables in its nftables form, and nft.
func netfilterFiles(system *rootfs) ([]entry, error) {
	programs := append([]string{"usr/sbin/xtables-nft-multi", "usr/sbin/nft"}, system.glob("usr/lib/*/xtables/*.so")...)
	entries, err := system.programs(programs...)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, suffix := range []string{"", "-save", "-restore"} {
			entries = append(entries, symlink("usr/sbin/"+name+suffix, "xtables-nft-multi"))
		}
	}
	return entries, nil
}

// operandUser is the user of the operand, as a number: the kubelet cannot tell whether a name is root.
const operandUser = "11211"

// operandImage is Debian's memcached with its libraries. It needs no shell, no writable file and no capability.
func operandImage(system *rootfs) (v1.Image, error) {
	version, err := system.packageVersion("memcached")
	if err != nil {
		return nil, err
	}
	if version != OperandVersion {
		return nil, fmt.Errorf("memcached is %s in Debian, and the operand is called %s: change OperandVersion", version, Operand)
	}
	entries, err := system.programs("usr/bin/memcached")
	if err != nil {
		return nil, err
	}
	entries = append(entries,
		text("etc/passwd", 0o644, fmt.Appendf(nil, "root:x:0:0::/:\nmemcache:x:%[1]s:%[1]s::/:\n", operandUser)),
		text("etc/group", 0o644, fmt.Appendf(nil, "root:x:0:\nmemcache:x:%s:\n", operandUser)),
	)
	files, err := packedLayer(entries)
	if err != nil {
		return nil, err
	}
	return assemble(v1.Config{
		Env: []string{searchPath}, User: operandUser + ":" + operandUser,
		// The same in words for a Deployment that gives arguments only, and for one that repeats the command.
		Entrypoint:   []string{"memcached"},
		ExposedPorts: map[string]struct{}{"11211/tcp": {}},
	}, files)
}

// componentOf is the component whose program is in the image kubeadm asks for, such as
// registry.k8s.io/coredns/coredns:v1.14.2, and the version of that program.
func componentOf(ref string) (component, version string) {
	name, tag, _ := strings.Cut(path.Base(ref), ":")
	version, _, _ = strings.Cut(tag, "-") // etcd's images count builds: 3.6.8-0
	return name, "v" + strings.TrimPrefix(version, "v")
}
