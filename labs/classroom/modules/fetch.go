package modules

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	// interruptGrace is how long a Go command may clean up after an interrupt: it finishes the file it is at.
	interruptGrace = 10 * time.Second
	// removable has the Go command make module caches that can be removed like other folders.
	removable = "GOFLAGS=-modcacherw"
)

// Check proves that what a GOPROXY has is enough: with an empty module cache, and nothing but the proxy in reach, the
// Go command finds every package that is compiled, on every system. log is told what is looked at, and how much was
// fetched until then. It takes as much disk as a learner's machine, in a folder below dir that is gone afterwards.
func Check(ctx context.Context, proxy, dir string, needs []Need, log func(string)) error {
	home, err := os.MkdirTemp(dir, "lab-check-modules-")
	if err != nil {
		return fmt.Errorf("check modules: %w", err)
	}
	defer os.RemoveAll(home)
	cache := filepath.Join(home, "go", "pkg", "mod")
	env := append([]string{
		"GOENV=off", "GOPATH=" + filepath.Join(home, "go"), "GOMODCACHE=" + cache,
		"GONOPROXY=", "GOPRIVATE=", "GOINSECURE=", "GOVCS=*:off", removable,
	}, Env(proxy)...)
	for _, n := range needs {
		log("checking with an empty module cache: " + n.Name)
		if err := n.fetch(ctx, env); err != nil {
			return err
		}
		log(fmt.Sprintf("a learner's machine has now fetched %s", stock(filepath.Join(cache, "cache", "download"))))
	}
	return nil
}

// FillCache has a module cache hold what is compiled on Linux. It takes what this machine's module cache has, and downloads the rest.
func FillCache(ctx context.Context, dir string, needs ...Need) error {
	sources, err := sources(ctx)
	if err != nil {
		return err
	}
	env := []string{"GOMODCACHE=" + dir, removable, "GOPROXY=" + sources, "GOTOOLCHAIN=local", "GOOS=linux"}
	for _, n := range needs {
		if err := n.resolve(ctx, env); err != nil {
			return fmt.Errorf("modules of %s: %w", n.Name, err)
		}
	}
	return nil
}

// fetch has the Go command look for everything that it looks for on a learner's machine, and so download it.
func (n Need) fetch(ctx context.Context, env []string) error {
	if err := n.download(ctx, env); err != nil {
		return fmt.Errorf("modules of %s: %w", n.Name, err)
	}
	for _, system := range n.Systems {
		if err := n.resolve(ctx, append(slices.Clone(env), "GOOS="+system)); err != nil {
			return fmt.Errorf("modules of %s on %s: %w", n.Name, system, err)
		}
	}
	if err := n.tidy(ctx, env); err != nil {
		return fmt.Errorf("modules of %s: %w", n.Name, err)
	}
	return nil
}

// download downloads every module that go.mod names, from copies of go.mod and go.sum: the Go command may add lines.
func (n Need) download(ctx context.Context, env []string) error {
	dir, err := os.MkdirTemp("", "lab-modules-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(n.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return run(ctx, dir, env, "mod", "download")
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
		if err := run(ctx, n.Dir, env, append(args, list.patterns...)...); err != nil {
			return err
		}
	}
	return nil
}

// tidy has the Go command find everything that `go mod tidy` looks at, and changes nothing. That go.mod would change is
// no error: a learner's does, at every step.
func (n Need) tidy(ctx context.Context, env []string) error {
	if !n.Tidied {
		return nil
	}
	cmd := command(ctx, n.Dir, env, "mod", "tidy", "-diff")
	var diff, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &diff, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && diff.Len() == 0 {
		return fmt.Errorf("go mod tidy: %w: %s", err, reason(stderr.String()))
	}
	return nil
}

// run runs a Go command; its error says what the command printed.
func run(ctx context.Context, dir string, env []string, args ...string) error {
	out, err := command(ctx, dir, env, args...).CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("go %s: %w: %s", args[0], err, reason(string(out)))
	}
	return nil
}

// command is a Go command that an interrupt ends without leaving half a file. What the caller's environment says of
// proxies and checksums holds, what it says of flags and workspaces does not.
func command(ctx context.Context, dir string, env []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS="), env...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = interruptGrace
	return cmd
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
