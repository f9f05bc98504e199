package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// ThisMachine describes the machine, its container engine, and the checkout at root. What cannot be found out stays
// empty.
func ThisMachine(ctx context.Context, root, engine string) Machine {
	m := Machine{
		System: runtime.GOOS + "/" + runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		Kernel:    firstLine(readFile("/proc/sys/kernel/osrelease")),
		Processor: field(readFile("/proc/cpuinfo"), "model name"),
		Kind:      moduleVersion("sigs.k8s.io/kind"), Commit: Commit(ctx, root),
	}
	kilobytes, _, _ := strings.Cut(field(readFile("/proc/meminfo"), "MemTotal"), " ")
	if n, err := strconv.ParseUint(kilobytes, 10, 64); err == nil {
		m.Bytes = n << 10
	}
	version, cgroup := "{{.Server.Version}}", "{{.CgroupVersion}}"
	if engine == "podman" {
		version, cgroup = "{{.Client.Version}}", "{{.Host.CgroupsVersion}}"
	}
	if v := said(ctx, root, engine, "version", "--format", version); v != "" {
		m.Engine = engine + " " + v
	}
	if v := said(ctx, root, engine, "info", "--format", cgroup); v != "" {
		m.Cgroup = "v" + strings.TrimPrefix(v, "v")
	}
	return m
}

// uncommitted marks the commit of a checkout that has changed since.
const uncommitted = "+"

// Commit is the short commit of the checkout at root, with "+" when tracked files have changed since, and "" when that
// is not known.
func Commit(ctx context.Context, root string) string {
	commit := said(ctx, root, "git", "rev-parse", "--short=12", "HEAD")
	if commit != "" && said(ctx, root, "git", "status", "--porcelain", "--untracked-files=no") != "" {
		commit += uncommitted
	}
	return commit
}

// said is what a program prints, "" when it fails.
func said(ctx context.Context, dir, program string, args ...string) string {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

func readFile(path string) string {
	data, _ := os.ReadFile(path) // the caller knows what it means when there is nothing
	return string(data)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimSpace(line)
}

// field is the value of the first line "name: value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// moduleVersion is that of a module that this program was built with.
func moduleVersion(path string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, module := range info.Deps {
		if module.Path == path {
			return module.Version
		}
	}
	return ""
}

// Commandline is how a run is repeated. block is the part of a page that it is for.
func Commandline(seed int64, rounds int, block string) string {
	switch block {
	case EmbeddedRoomsBlock:
		return "bin/lab --cluster embedded bench --rooms"
	case GrowthBlock, RoomsBlock:
		return "bin/lab bench --" + block
	}
	return fmt.Sprintf("bin/lab bench --seed %d --rounds %d", seed, rounds)
}
