// Package components builds the upstream programs of a Kubernetes node from source, or downloads those of Kubernetes.
//
// A Go module pins each program, so that its dependencies are its own and go.sum vouches for them. To change a version:
//
//	go -C scripts/tools get -modfile=$PWD/clusters/components/modules/etcd.mod go.etcd.io/etcd/server/v3@v3.6.9
package components

import (
	"cmp"
	"context"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"

	"github.com/example/operator-lab/clusters/internal/lock"
)

// sources are compiled in, because the zip of a Go module, which importers have, leaves out the modules below it.
//
//go:embed modules pause/main.go
var sources embed.FS

// component is a program that can be built.
type component struct {
	name    string
	module  string // has a go.mod and perhaps a go.sum in the folder modules
	pkg     string // that it is compiled from
	version string // of the upstream module, "" for pause, which is ours
	flags   string // for the linker
	inputs  string // everything that decides what is compiled, except for the version of Go
}

// components are all that can be built, by name: the tools of the modules.
func components() map[string]component {
	all := map[string]component{}
	for _, module := range []string{"cni", "containerd", "coredns", "etcd", "gvisor", "kubernetes", "kwok", "pause"} {
		c := component{module: module, flags: "-s -w"}
		for _, file := range []string{module + "/main.go", "modules/" + module + ".mod", "modules/" + module + ".sum"} {
			if data, err := sources.ReadFile(file); err == nil {
				c.inputs += fmt.Sprintf("%s/go%s %x\n", module, path.Ext(file), sha256.Sum256(data))
			}
		}
		data, _ := sources.ReadFile("modules/" + module + ".mod")
		mod, _ := modfile.Parse(module+".mod", data, nil) // it is compiled in, and valid
		for _, r := range mod.Require {
			if strings.HasPrefix(mod.Tool[0].Path+"/", r.Mod.Path+"/") {
				c.version = r.Mod.Version
			}
		}
		if module == "kubernetes" { // kubeadm and the API server ask for their version
			const set = " -X k8s.io/component-base/version.git"
			c.flags += set + "Version=" + c.version + set + "Major=1" + set + "Minor=" + strings.Split(c.version, ".")[1] + set + "TreeState=clean"
		}
		packages := map[string]string{}
		for _, tool := range mod.Tool {
			packages[strings.Replace(path.Base(tool.Path), "v3", "etcd", 1)] = tool.Path // go.etcd.io/etcd/server/v3
		}
		for _, name := range slices.Sorted(maps.Keys(packages)) {
			c.inputs += name + " " + packages[name] + "\n"
		}
		c.inputs += c.flags + " " + runtime.GOARCH + "\n"
		for c.name, c.pkg = range packages {
			all[c.name] = c
		}
	}
	return all
}

// Version is the version of the upstream module that the named component is built from, such as v1.36.3. Components that
// do not exist, and pause, which is ours, have none.
func Version(name string) string { return components()[name].version }

// Digest writes everything that decides what Build makes of the named components, except for the version of Go.
func Digest(w io.Writer, names ...string) {
	all := components()
	for _, name := range names {
		fmt.Fprintln(w, name, all[name].inputs)
	}
}

// Builder builds programs for the architecture of this process. It is for one goroutine at a time.
type Builder struct {
	// CacheDir is where programs are kept between runs; each version has its own folder below it.
	CacheDir string
	// OS is the operating system that they run on; "" means linux, as in every node.
	OS string
	// Download takes the programs of Kubernetes for Linux from https://dl.k8s.io, if that can be reached, and checks their
	// published SHA-256 sums. The default compiles all of them.
	Download bool
	// Log is told in one line what takes long. The default tells nobody.
	Log func(line string)

	transport http.RoundTripper // nil means Go's own
}

// Build returns the path of each named program. What is in the cache is not built again: what was compiled from the same
// module with the same Go version, or downloaded in the same version. Of several processes that build at once, one builds
// and the others wait for it. Compiling needs Go.
//
// Build deletes from the cache what no Build has asked for in 30 days: programs of other versions and interrupted builds. A
// deleted program that runs goes on, but cannot be started again.
func (b *Builder) Build(ctx context.Context, names ...string) (map[string]string, error) {
	if b.Log == nil {
		b.Log = func(string) {}
	}
	dir := filepath.Join(b.CacheDir, "components")
	unlock, err := lock.Wait(ctx, filepath.Join(dir, "lock"))
	if err != nil {
		return nil, fmt.Errorf("build components: %w", err)
	}
	defer unlock()
	all, paths := components(), map[string]string{}
	for _, name := range names {
		c, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("build components: no component is called %s", name)
		}
		if paths[name] = b.cached(c); paths[name] == "" {
			if paths[name], err = b.build(ctx, c, filepath.Join(dir, "building")); err != nil {
				return nil, fmt.Errorf("build component %s: %w", name, err)
			}
		}
		_ = os.Chtimes(filepath.Dir(paths[name]), time.Time{}, time.Now()) // the last use; fails in a cache that others own
	}
	entries, _ := os.ReadDir(dir) // the next Build tries again
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && entry.IsDir() && time.Since(info.ModTime()) > 30*24*time.Hour {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
	return paths, nil
}

// Missing returns those of the named programs that Build would have to build.
func (b *Builder) Missing(names ...string) []string {
	all := components()
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return b.cached(all[name]) != "" })
}

// cached is where a program is, or "".
func (b *Builder) cached(c component) string {
	compiled, downloaded := b.places(c)
	for _, path := range []string{compiled, downloaded} {
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// places are where a program belongs when it was compiled, and when it was downloaded, "" if it cannot be.
func (b *Builder) places(c component) (compiled, downloaded string) {
	key := fmt.Sprintf("%s-%.6x", c.module, sha256.Sum256([]byte(runtime.Version()+"\n"+c.inputs)))
	compiled = filepath.Join(b.CacheDir, "components", key+strings.TrimPrefix("-"+b.os(), "-linux"), c.name)
	if b.Download && b.os() == "linux" && c.module == "kubernetes" {
		downloaded = filepath.Join(b.CacheDir, "components", "kubernetes-"+c.version+"-"+runtime.GOARCH, c.name)
	}
	return compiled, downloaded
}

// build makes a program in dir, which is for one build at a time, and moves it to its place.
func (b *Builder) build(ctx context.Context, c component, dir string) (path string, err error) {
	defer os.RemoveAll(dir)
	// With -modfile, Go wants a go.mod all the same, but does not read it.
	if err := errors.Join(os.RemoveAll(dir), os.CopyFS(dir, sources), os.WriteFile(filepath.Join(dir, "go.mod"), nil, 0o600)); err != nil {
		return "", err
	}
	made := filepath.Join(dir, "program")
	path, downloaded := b.places(c)
	if downloaded != "" {
		if err := b.download(ctx, c, made); err == nil {
			path = downloaded
		} else {
			b.Log("cannot download it: " + err.Error())
		}
	}
	if path != downloaded {
		b.Log("compiling " + c.name + ", once, which takes up to three minutes on two cores")
		cmd := exec.CommandContext(ctx, "go", "build", "-modfile=modules/"+c.module+".mod", "-trimpath", "-buildvcs=false",
			"-ldflags", c.flags, "-o", "program", c.pkg)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+b.os(), "GOARCH="+runtime.GOARCH, "GOWORK=off", "GOFLAGS=")
		cmd.WaitDelay = 2 * time.Second // compilers may hold the output of a go command that was killed
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("run go build: %w\n%s", errors.Join(ctx.Err(), err), out[max(0, len(out)-2000):])
		}
	}
	return path, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.Rename(made, path))
}

// download writes a program of Kubernetes to a file.
func (b *Builder) download(ctx context.Context, c component, to string) error {
	url := fmt.Sprintf("https://dl.k8s.io/release/%s/bin/linux/%s/%s", c.version, runtime.GOARCH, c.name)
	b.Log("downloading " + url)
	want, err := b.get(ctx, url+".sha256", 10*time.Second) // without internet, compiling begins soon
	if err != nil {
		return err
	}
	program, err := b.get(ctx, url, 10*time.Minute)
	if err != nil {
		return err
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(program)); got != strings.TrimSpace(string(want)) {
		return fmt.Errorf("%s has the SHA-256 sum %s, not the published %.64s", url, got, want)
	}
	return os.WriteFile(to, program, 0o755)
}

// get returns what is at a URL.
func (b *Builder) get(ctx context.Context, url string, timeout time.Duration) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := (&http.Client{Transport: b.transport, Timeout: timeout}).Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return io.ReadAll(resp.Body)
}

func (b *Builder) os() string { return cmp.Or(b.OS, "linux") }

// CacheDir is where programs and images are kept that are built once for all checkouts of this machine: LAB_CACHE, else
// operator-lab in the user's cache folder. It may not exist yet.
func CacheDir() (string, error) {
	if dir := os.Getenv("LAB_CACHE"); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache directory: set LAB_CACHE or HOME (%w)", err)
	}
	return filepath.Join(dir, "operator-lab"), nil
}
