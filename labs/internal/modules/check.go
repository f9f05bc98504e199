package modules

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Room is what a learner's machine is told: the variables of its Go command, as goproxy.Env returns them.
type Room struct {
	Env []string
}

// Check proves that the room has all that is needed: with an empty module cache, and nothing but the room in reach, the
// Go command finds every package that is compiled, on every system. A toolchain, when one is named, is downloaded for
// platform and verified. log is told what is looked at, and how much was fetched until then. It takes as much disk as a
// learner's machine, in a folder below dir that is gone afterwards.
func (r Room) Check(ctx context.Context, dir string, needs []Need, toolchain, platform string, log func(string)) error {
	home, err := os.MkdirTemp(dir, "lab-check-modules-")
	if err != nil {
		return fmt.Errorf("check modules: %w", err)
	}
	defer os.RemoveAll(home)
	env := r.env(home)
	for _, n := range needs {
		log("checking with an empty module cache: " + n.Name)
		for _, system := range n.Systems {
			if err := n.resolve(ctx, append(slices.Clone(env), "GOOS="+system)); err != nil {
				return fmt.Errorf("check the modules of %s on %s: %w", n.Name, system, err)
			}
		}
		if err := n.tidy(ctx, env); err != nil {
			return fmt.Errorf("check modules: %w", err)
		}
		log(fmt.Sprintf("a learner's machine has now fetched %s", fetched(home)))
	}
	if toolchain == "" {
		return nil
	}
	log(fmt.Sprintf("checking with an empty module cache: toolchain %s for %s", toolchain, platform))
	if _, err := download(ctx, home, env, toolchainModule+"@"+toolchainVersion(toolchain, platform)); err != nil {
		return fmt.Errorf("check toolchain %s for %s: %w", toolchain, platform, err)
	}
	return nil
}

// removable has the Go command make module caches that can be removed like other folders.
const removable = "GOFLAGS=-modcacherw"

// env is the environment of a machine that has Go, and nothing of the rest of this one.
func (r Room) env(home string) []string {
	env := []string{
		"GOENV=off", "GOPATH=" + filepath.Join(home, "go"), "GOMODCACHE=" + filepath.Join(home, "go", "pkg", "mod"),
		"GONOSUMDB=", "GONOPROXY=", "GOPRIVATE=", "GOINSECURE=", "GOVCS=*:off", removable,
	}
	// The Go command that runs this is new enough, and its GOTOOLCHAIN must not hide that a module is missing.
	return append(append(env, r.Env...), "GOTOOLCHAIN=local")
}

// fetched is what has been downloaded into a home.
func fetched(home string) Stock {
	stock := Stock{}
	downloads := filepath.Join(home, "go", "pkg", "mod", "cache", "download")
	_ = filepath.WalkDir(downloads, func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".zip" {
			if info, err := d.Info(); err == nil {
				stock[path] = info.Size()
			}
		}
		return nil // it is for a figure
	})
	return stock
}

// resolve finds every package that is compiled, and in doing so downloads the modules that they are in.
func (n Need) resolve(ctx context.Context, env []string) error {
	for _, list := range []struct {
		flag     string
		patterns []string
	}{{"-test=true", n.Packages}, {"-test=false", n.Programs}} {
		if len(list.patterns) == 0 {
			continue
		}
		args := []string{"list", "-mod=readonly", "-deps", "-f", "{{with .Error}}{{.}}{{end}}", list.flag}
		args = append(args, list.patterns...)
		out, err := command(ctx, n.Dir, env, args...).CombinedOutput()
		if err != nil {
			return errors.Join(ctx.Err(), fmt.Errorf("go list: %w: %s", err, reason(string(out))))
		}
	}
	return nil
}

// reason are the lines in which the Go command says what went wrong, without those about what it downloads.
func reason(output string) string {
	const most = 5
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(output), "\n"), func(line string) bool {
		return strings.HasPrefix(line, "go: downloading ")
	})
	if len(lines) > most {
		lines = append(lines[:most], fmt.Sprintf("… and %d more lines", len(lines)-most))
	}
	return strings.Join(lines, "; ")
}
