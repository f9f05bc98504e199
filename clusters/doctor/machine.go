package doctor

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters/internal/disk"
)

// machine is everything that is asked about this machine, so that tests can
// describe one of their own.
type machine struct {
	os string
	// files is the root of the file system.
	files fs.FS
	// look finds a program on PATH.
	look func(name string) (string, error)
	// run returns what a program prints. The error carries what it complained about.
	run func(ctx context.Context, name string, args ...string) (string, error)
	// free is the space in bytes on the file system of path.
	free func(path string) (uint64, error)
	// pull says whether an image could be pulled.
	pull func(ctx context.Context, image string) error
	// modified is the time at which a file of the checkout was last written.
	modified func(path string) (time.Time, error)
	now      func() time.Time
}

// runTimeout bounds one question. Starting a container, the longest of them,
// takes a second.
const runTimeout = 30 * time.Second

func thisMachine() machine {
	return machine{
		os:    runtime.GOOS,
		files: os.DirFS("/"),
		look:  exec.LookPath,
		run:   run,
		free:  disk.Free,
		pull:  canPull,
		modified: func(path string) (time.Time, error) {
			info, err := os.Stat(path)
			if err != nil {
				return time.Time{}, err
			}
			return info.ModTime(), nil
		},
		now: time.Now,
	}
}

func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, runTimeout)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		if text := strings.TrimSpace(stderr.String()); text != "" {
			return "", fmt.Errorf("%s", firstLine(text))
		}
		return "", err
	}
	return strings.TrimSpace(stdout.String()), nil
}

// firstLine keeps a finding on one line.
func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return strings.TrimSpace(line)
}

// number reads a file that holds one number; false when there is none.
func (m machine) number(path string) (uint64, bool) {
	data, err := fs.ReadFile(m.files, path)
	if err != nil {
		return 0, false
	}
	var n uint64
	_, err = fmt.Sscan(string(data), &n)
	return n, err == nil
}

// field reads a line "NAME: VALUE" of a file under /proc.
func (m machine) field(path, name string) (string, bool) {
	data, err := fs.ReadFile(m.files, path)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value), true
		}
	}
	return "", false
}
