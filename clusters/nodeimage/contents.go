package nodeimage

import (
	"fmt"
	"io"
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

// stopSignal ends systemd.
const stopSignal = "SIGRTMIN+3"

// nodeChanges make a container's image a node's, as `docker commit` takes them. systemd wants to know that it is in a
// container.
func nodeChanges(labels map[string]string) []string {
	changes := []string{
		"ENV " + searchPath,
		"ENV container=docker",
		`ENTRYPOINT ["` + strings.Join(entrypoint(), `", "`) + `"]`,
	}
	for name, value := range labels {
		changes = append(changes, "LABEL "+name+"="+value)
	}
	return changes
}

// nodeFiles are the files of the node beside its packages: kind's own, taken from kind's module folder, our
// configuration, and the programs.
func nodeFiles(kindDir string, programs map[string]string) ([]entry, error) {
	entries, err := kindFiles(os.DirFS(filepath.Join(kindDir, "images", "base", "files")))
	if err != nil {
		return nil, fmt.Errorf("read kind's node files: %w", err)
	}
	entries = append(entries,
		entry{name: "kind/version", mode: 0o644, data: []byte(KubernetesVersion)},
		entry{name: "kind/manifests/default-cni.yaml", mode: 0o644, data: recipeFile("default-cni.yaml")},
		entry{name: "kind/manifests/default-storage.yaml", mode: 0o644, data: recipeFile("default-storage.yaml")},
		entry{name: "etc/cni/net.d/10-lab.conflist", mode: 0o644, data: recipeFile("10-lab.conflist")},
	)
	for dir, names := range map[string][]string{
		"usr/local/bin": {"containerd", "containerd-shim-runc-v2", "ctr"},
		"usr/bin":       {"kubelet", "kubeadm", "kubectl"},
		"opt/cni/bin":   {"host-local", "loopback", "portmap", "ptp"},
	} {
		for _, name := range names {
			entries = append(entries, program(path.Join(dir, name), programs[name]))
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
		entries = append(entries, entry{name: name, mode: mode, data: data})
		return err
	})
	return entries, err
}

// componentImage is the image of one component: its program on PATH, and beside it nothing but these layers.
func componentImage(component, host string, layers ...v1.Layer) (v1.Image, error) {
	file, err := layer(func() (io.ReadCloser, error) { return tarOf(program("usr/local/bin/"+component, host)), nil })
	if err != nil {
		return nil, err
	}
	// kubeadm's manifests name the program, except that of coredns: it gives arguments only.
	config := v1.Config{Env: []string{searchPath}, Entrypoint: []string{"/usr/local/bin/" + component}}
	return assemble(config, append(layers, file)...)
}

// operandUser is the user of the operand, as a number: the kubelet cannot tell whether a name is root.
const operandUser = "11211"

// operandImage is Debian's memcached with its libraries. It needs no shell, no writable file and no capability.
func operandImage(files v1.Layer) (v1.Image, error) {
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
