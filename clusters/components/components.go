// Package components builds the upstream programs of a Kubernetes node from source.
//
// Every program is pinned by a small nested module beside this file, so that its dependencies are its own and go.sum
// vouches for each of them. Nothing is downloaded but Go modules, unless the builder has [Releases] to take programs from.
package components

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters/internal/lock"
)

// module is a folder below clusters/components that can be built.
type module struct {
	// dir is relative to clusters/components; "." is this folder, part of the root module.
	dir string
	// packages by the name of the program they make.
	packages map[string]string
	// outside says that no node image contains it.
	outside bool
}

// versionPackage is where Kubernetes programs look for their version. Without it kubeadm does not know which
// configuration to write, and the API server reports v0.0.0.
const versionPackage = "k8s.io/component-base/version"

// modules is the list of everything that can be built.
func modules() []module {
	kubernetes := module{dir: "kubernetes", packages: map[string]string{}}
	for _, name := range []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubeadm", "kubectl",
	} {
		kubernetes.packages[name] = "k8s.io/kubernetes/cmd/" + name
	}
	return []module{
		kubernetes,
		{dir: "etcd", packages: map[string]string{"etcd": "go.etcd.io/etcd/server/v3"}},
		{dir: "coredns", packages: map[string]string{"coredns": "github.com/coredns/coredns"}},
		{dir: "containerd", packages: map[string]string{
			"containerd":              "github.com/containerd/containerd/v2/cmd/containerd",
			"containerd-shim-runc-v2": "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"ctr":                     "github.com/containerd/containerd/v2/cmd/ctr",
		}},
		{dir: "cni", packages: map[string]string{
			"host-local": "github.com/containernetworking/plugins/plugins/ipam/host-local",
			"loopback":   "github.com/containernetworking/plugins/plugins/main/loopback",
			"portmap":    "github.com/containernetworking/plugins/plugins/meta/portmap",
			"ptp":        "github.com/containernetworking/plugins/plugins/main/ptp",
		}},
		{dir: ".", packages: map[string]string{"pause": "./pause"}},
		{dir: "kwok", packages: map[string]string{"kwok": "sigs.k8s.io/kwok/cmd/kwok"}, outside: true},
		{dir: "gvisor", packages: map[string]string{"runsc": "gvisor.dev/gvisor/runsc"}, outside: true},
	}
}

// Names lists every program that can be built, sorted.
func Names() []string { return namesOf(modules()) }

// nodeModules is what a node image is made of.
func nodeModules() []module {
	return slices.DeleteFunc(modules(), func(m module) bool { return m.outside })
}

func namesOf(modules []module) []string {
	var names []string
	for _, m := range modules {
		for name := range m.packages {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Builder builds programs for the architecture of this process. It is for one goroutine at a time.
type Builder struct {
	// Root is the checkout.
	Root string
	// CacheDir is where programs are kept between runs; each version has its own folder below it.
	CacheDir string
	// OS is the operating system that they run on; "" means linux, as in every node.
	OS string
	// Releases are where programs are taken from, if their servers can be reached. The default compiles all of them.
	Releases *Releases
	// Log is told in one line what takes long. The default tells nobody.
	Log func(line string)

	version  string  // of Go, once it was asked for
	packages counter // compiled so far
	estimate estimate
}

// Build returns the path of each named program, and of all that a node image contains when no name is given. What was built before from
// the same module files with the same Go version is not built again. Several processes may build at once: one builds,
// the others wait for it.
func (b *Builder) Build(ctx context.Context, names ...string) (map[string]string, error) {
	if len(names) == 0 {
		names = namesOf(nodeModules())
	}
	if unknown := without(names, Names()); len(unknown) > 0 {
		return nil, fmt.Errorf("build components: no component is called %s", strings.Join(unknown, ", "))
	}
	unlock, err := lock.Wait(ctx, filepath.Join(b.CacheDir, "components", "lock"))
	if err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	defer unlock()
	missing, err := b.Missing(ctx, names...)
	if err != nil {
		return nil, err
	}
	b.estimate = estimate{begun: time.Now(), all: usually(missing)}
	paths := map[string]string{}
	for _, m := range modules() {
		if err := b.buildModule(ctx, m, names, paths); err != nil {
			return nil, fmt.Errorf("build components of clusters/components/%s: %w", m.dir, err)
		}
	}
	return paths, nil
}

// without returns the elements of list that are not in known.
func without(list, known []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(known, s) })
}

// Missing returns those of the named programs that Build would have to build.
func (b *Builder) Missing(ctx context.Context, names ...string) ([]string, error) {
	var missing []string
	for _, m := range modules() {
		_, wanted, err := b.missing(ctx, m, names, map[string]string{})
		if err != nil {
			return nil, fmt.Errorf("look for components: %w", err)
		}
		missing = append(missing, wanted...)
	}
	return missing, nil
}

// missing adds to paths those of the named programs that m makes, and returns the folder they belong into and which of
// them are not there.
func (b *Builder) missing(ctx context.Context, m module, names []string, paths map[string]string) (dir string, missing []string, err error) {
	wanted := slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		_, ok := m.packages[name]
		return !ok
	})
	if len(wanted) == 0 {
		return "", nil, nil
	}
	key, err := b.key(ctx, m)
	if err != nil {
		return "", nil, err
	}
	dir = filepath.Join(b.CacheDir, "components", key)
	for _, name := range wanted {
		paths[name] = filepath.Join(dir, name)
		if _, err := os.Stat(paths[name]); err == nil {
			continue
		}
		if released := filepath.Join(dir+releasedSuffix, name); b.Releases != nil && isFile(released) {
			paths[name] = released
			continue
		}
		missing = append(missing, name)
	}
	slices.Sort(missing)
	return dir, missing, nil
}

// buildModule adds to paths those of the named programs that m makes.
func (b *Builder) buildModule(ctx context.Context, m module, names []string, paths map[string]string) error {
	dir, missing, err := b.missing(ctx, m, names, paths)
	if err != nil || len(missing) == 0 {
		return err
	}
	if b.Releases != nil && b.os() == nodeOS && m.published() {
		released := dir + releasedSuffix
		err := b.download(ctx, m, missing, released)
		if err == nil {
			for _, name := range missing {
				paths[name] = filepath.Join(released, name)
			}
			b.estimate.built += usually(missing)
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		b.log(fmt.Sprintf("compiling %s instead: %v", strings.Join(missing, " "), err))
	}
	b.announce(missing)
	if err := b.compile(ctx, m, missing, dir); err != nil {
		return err
	}
	b.estimate.built += usually(missing)
	return nil
}

// releasedSuffix ends the name of a folder with programs that were not compiled here. A node image never has them: it is
// made from source.
const releasedSuffix = "-released"

func isFile(name string) bool {
	_, err := os.Stat(name)
	return err == nil
}

// temporary makes a folder beside dir, and the folders above.
func temporary(dir string) (string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create component cache: %w", err)
	}
	tmp, err := os.MkdirTemp(filepath.Dir(dir), "building-")
	if err != nil {
		return "", fmt.Errorf("create component cache: %w", err)
	}
	return tmp, nil
}

// keep moves programs from tmp, where they have the names of built, to dir.
func keep(tmp, dir string, names []string, built func(name string) string) error {
	for _, name := range names {
		if err := os.Rename(filepath.Join(tmp, built(name)), filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("keep %s: %w", name, err)
		}
	}
	return nil
}

// compile builds the programs into a folder of their own and moves them to dir when all of them are there.
func (b *Builder) compile(ctx context.Context, m module, names []string, dir string) error {
	tmp, err := temporary(dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	stop := b.follow(ctx, m, names)
	defer stop()
	args := []string{"build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", m.linkerFlags(b.Root), "-o", tmp + "/"}
	for _, name := range names {
		args = append(args, m.packages[name])
	}
	if _, err := b.goCommand(ctx, m, args...); err != nil {
		return err
	}
	return keep(tmp, dir, names, func(name string) string { return programName(m.packages[name]) })
}

// goCommand runs go in the module's folder, independent of what the caller's environment says about Go.
func (b *Builder) goCommand(ctx context.Context, m module, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = filepath.Join(b.Root, "clusters", "components", m.dir)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+b.os(), "GOARCH="+arch, "GOWORK=off", "GOFLAGS=")
	var stderr strings.Builder
	cmd.Stderr = io.MultiWriter(&stderr, &b.packages)
	// Compilers that go started may hold the pipes after go was killed.
	cmd.WaitDelay = killDelay
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return "", fmt.Errorf("run go %s: %w", args[0], ctx.Err())
	}
	if err != nil {
		return "", fmt.Errorf("run go %s: %w\n%s", args[0], err, tail(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}

// tail is the last lines of what go printed, where the reason stands.
func tail(output string) string {
	const keep = 10
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-keep):], "\n")
}

func (b *Builder) log(line string) {
	if b.Log != nil {
		b.Log(line)
	}
}

// os is the operating system to build for.
func (b *Builder) os() string {
	if b.OS == "" {
		return nodeOS
	}
	return b.OS
}

// Digest writes everything that decides what Build makes for a node image of the checkout, except for the version of
// Go.
func Digest(root string, w io.Writer) error {
	for _, m := range nodeModules() {
		if err := m.digest(root, w); err != nil {
			return fmt.Errorf("read component modules: %w", err)
		}
	}
	return nil
}
