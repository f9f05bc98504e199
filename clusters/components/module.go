package components

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	// arch is the architecture programs are built for: nodes run on the machine at hand.
	arch = runtime.GOARCH
	// nodeOS is what runs in every node, wherever its container engine is.
	nodeOS = "linux"
	// killDelay is what is left to the children of a cancelled go command.
	killDelay = 2 * time.Second
)

// Version is the version of the upstream module that the named component is built from, such as v1.36.3.
func Version(root, component string) (string, error) {
	for _, m := range modules() {
		if pkg, ok := m.packages[component]; ok && m.dir != "." {
			return m.version(root, pkg)
		}
	}
	return "", fmt.Errorf("look up version: no component is called %s", component)
}

// version finds the required module that pkg belongs to.
func (m module) version(root, pkg string) (string, error) {
	name := filepath.Join(root, "clusters", "components", m.dir, "go.mod")
	data, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("look up version: %w", err)
	}
	file, err := modfile.Parse(name, data, nil)
	if err != nil {
		return "", fmt.Errorf("look up version: %w", err)
	}
	for _, r := range file.Require {
		if pkg == r.Mod.Path || strings.HasPrefix(pkg, r.Mod.Path+"/") {
			return r.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("look up version: %s requires no module of %s", name, pkg)
}

// linkerFlags strips symbols, and tells Kubernetes programs which version they are.
func (m module) linkerFlags(root string) string {
	flags := "-s -w"
	if m.dir != "kubernetes" {
		return flags
	}
	version, err := m.version(root, m.packages["kubelet"])
	if err != nil {
		return flags // go build is about to say what is wrong with go.mod
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(semver.MajorMinor(version), "v"), ".")
	for _, set := range []string{"gitVersion=" + version, "gitMajor=" + major, "gitMinor=" + rest, "gitTreeState=clean"} {
		flags += " -X " + versionPackage + "." + set
	}
	return flags
}

// digest writes the module's inputs: its files, its packages and the flags they are built with.
func (m module) digest(root string, w io.Writer) error {
	files := []string{"go.mod", "go.sum"}
	if m.dir == "." {
		files = []string{"pause/main.go"} // go.mod of the root changes for other reasons, and pause imports nothing
	}
	for _, file := range files {
		data, err := os.ReadFile(filepath.Join(root, "clusters", "components", m.dir, file))
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%s/%s %x\n", m.dir, file, sha256.Sum256(data))
	}
	for _, name := range slices.Sorted(maps.Keys(m.packages)) {
		fmt.Fprintf(w, "%s %s\n", name, m.packages[name])
	}
	fmt.Fprintln(w, m.linkerFlags(root), arch)
	return nil
}

// key names the folder of what is built from today's inputs with today's Go.
func (b *Builder) key(ctx context.Context, m module) (string, error) {
	if b.version == "" {
		version, err := b.goCommand(ctx, m, "env", "GOVERSION")
		if err != nil {
			return "", err
		}
		b.version = version
	}
	hash := sha256.New()
	fmt.Fprintln(hash, b.version)
	if b.os() != nodeOS {
		fmt.Fprintln(hash, b.os())
	}
	if err := m.digest(b.Root, hash); err != nil {
		return "", err
	}
	name := m.dir
	if name == "." {
		name = "own"
	}
	return fmt.Sprintf("%s-%.6x", name, hash.Sum(nil)), nil
}

// major is the last element of a module path that only says the major version.
var major = regexp.MustCompile(`/v[0-9]+$`)

// programName is what go build calls the program of a package.
func programName(pkg string) string { return path.Base(major.ReplaceAllString(pkg, "")) }
