package modules

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
)

// interruptGrace is how long a Go command may clean up after an interrupt: it finishes the file it is at.
const interruptGrace = 10 * time.Second

// Cache is the module cache of this machine.
type Cache struct {
	// Downloads is the folder cache/download in it.
	Downloads string
	// Private are the patterns of modules that are not for others, as in GOPRIVATE.
	Private string
}

// FindCache asks the Go command where it keeps modules.
func FindCache(ctx context.Context) (Cache, error) {
	out, err := command(ctx, "", nil, "env", "-json", "GOMODCACHE", "GOPRIVATE", "GONOPROXY").Output()
	var s struct{ GOMODCACHE, GOPRIVATE, GONOPROXY string }
	if err == nil {
		err = json.Unmarshal(out, &s)
	}
	if err != nil {
		return Cache{}, errors.Join(ctx.Err(), fmt.Errorf("find the module cache: go env: %w", err))
	}
	var private []string
	for _, patterns := range []string{s.GOPRIVATE, s.GONOPROXY} {
		if patterns != "" && patterns != "none" {
			private = append(private, patterns)
		}
	}
	return Cache{Downloads: filepath.Join(s.GOMODCACHE, "cache", "download"), Private: strings.Join(private, ",")}, nil
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

// Stock is what was found or downloaded: the sizes of zips in bytes.
type Stock map[string]int64

// Bytes is the size of all.
func (s Stock) Bytes() int64 {
	var sum int64
	for _, size := range s {
		sum += size
	}
	return sum
}

// String is such as "113 modules, 63 MB".
func (s Stock) String() string {
	noun := "modules"
	if len(s) == 1 {
		noun = "module"
	}
	return fmt.Sprintf("%d %s, %s", len(s), noun, Megabytes(s.Bytes()))
}

// Megabytes is a size in bytes for people, such as "63 MB".
func Megabytes(size int64) string { return fmt.Sprintf("%d MB", (size+500_000)/1_000_000) }

// Absent are the modules that are named in a go.mod and not in the cache: what [Fill] would download.
func (c Cache) Absent(needs []Need) ([]string, error) {
	seen := map[string]bool{}
	var absent []string
	for _, n := range needs {
		file, err := n.modfile()
		if err != nil {
			return nil, err
		}
		for _, m := range required(file) {
			if seen[m.String()] {
				continue
			}
			seen[m.String()] = true
			kept, err := c.kept(m)
			if err != nil {
				return nil, fmt.Errorf("look for the modules of %s: %w", n.Name, err)
			}
			if _, ok := whole(kept); !ok {
				absent = append(absent, m.String())
			}
		}
	}
	return absent, nil
}

// required are the versions that a go.mod asks for, and that come from elsewhere.
func required(file *modfile.File) []module.Version {
	var all []module.Version
	for _, r := range file.Require {
		m := r.Mod
		for _, replace := range file.Replace {
			if replace.Old.Path == m.Path && (replace.Old.Version == "" || replace.Old.Version == m.Version) {
				m = replace.New
				break
			}
		}
		if m.Version != "" { // else it is a folder
			all = append(all, m)
		}
	}
	return all
}

// kept is where the cache has the files of a version, without their ends.
func (c Cache) kept(m module.Version) (string, error) {
	path, err := module.EscapePath(m.Path)
	if err != nil {
		return "", err
	}
	version, err := module.EscapeVersion(m.Version)
	return filepath.Join(c.Downloads, filepath.FromSlash(path), "@v", version), err
}

// Fill brings all modules that are needed into the cache. What is there already is not downloaded again, and what has
// arrived before an error stays. Log is told one line before and after each need.
func Fill(ctx context.Context, needs []Need, log func(string)) (Stock, error) {
	all := Stock{}
	for _, n := range needs {
		file, err := n.modfile()
		if err != nil {
			return all, err
		}
		log(fmt.Sprintf("modules of %s: %d are named in its go.mod", n.Name, len(file.Require)))
		stock, err := n.download(ctx)
		for zip, size := range stock {
			all[zip] = size
		}
		if err == nil {
			err = n.tidy(ctx, nil)
		}
		if err != nil {
			return all, err
		}
		log(fmt.Sprintf("modules of %s: %s", n.Name, stock))
	}
	return all, nil
}

// download downloads every module that go.mod names, from copies of go.mod and go.sum: the Go command may add lines.
func (n Need) download(ctx context.Context) (Stock, error) {
	dir, err := os.MkdirTemp("", "lab-modules-")
	if err != nil {
		return nil, fmt.Errorf("download the modules of %s: %w", n.Name, err)
	}
	defer os.RemoveAll(dir)
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(filepath.Join(n.Dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("download the modules of %s: %w", n.Name, err)
		}
	}
	stock, err := download(ctx, dir, nil)
	if err != nil {
		return stock, fmt.Errorf("download the modules of %s: %w", n.Name, err)
	}
	return stock, nil
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
		return fmt.Errorf("look at what go mod tidy needs in %s: %w: %s", n.Name, err, reason(stderr.String()))
	}
	return nil
}

// download runs `go mod download` in dir and returns what is there now, also beside an error.
func download(ctx context.Context, dir string, env []string, modules ...string) (Stock, error) {
	cmd := command(ctx, dir, env, append([]string{"mod", "download", "-json"}, modules...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	runErr := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	stock, reason := Stock{}, ""
	for decoder := json.NewDecoder(&stdout); ; {
		var m struct{ Path, Version, Error, Zip string }
		if decoder.Decode(&m) != nil {
			break // the end, or no JSON: then the exit code says so
		}
		if m.Error != "" && reason == "" {
			reason = m.Error
		}
		if info, err := os.Stat(m.Zip); m.Zip != "" && err == nil {
			stock[m.Path+"@"+m.Version] = info.Size()
		}
	}
	if runErr == nil {
		return stock, nil
	}
	if reason == "" {
		reason = stderr.String()
	}
	return stock, fmt.Errorf("go mod download: %w: %s", runErr, strings.Join(strings.Fields(reason), " "))
}
