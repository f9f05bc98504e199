package doctor

import (
	"context"
	"fmt"
	"go/version"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/clusters/engine"
)

const mega, giga = 1 << 20, 1 << 30

// checkRoom compares what is free with what a cluster needs, and with what is comfortable.
func (r *run) checkRoom(name, fix string, free, needed, comfortable uint64) {
	const inGB = 1.0 / giga
	switch {
	case free < needed:
		r.add(Error, name, fix, "%.1f GB free, and a cluster needs %.1f GB", float64(free)*inGB, float64(needed)*inGB)
	case free < comfortable:
		r.add(Warning, name, fix, "%.1f GB free; %.1f GB is comfortable", float64(free)*inGB, float64(comfortable)*inGB)
	default:
		r.add(Info, name, "", "%.1f GB free", float64(free)*inGB)
	}
}

// checkDisks looks at all folders that a run or its compilations write to, as far as they exist. They may be on different
// file systems.
func (r *run) checkDisks(ctx context.Context) {
	if f := TemporaryFolder(); f.Severity > Info {
		r.findings = append(r.findings, f)
	}
	goFolders, _ := engine.Ask(ctx, "go", "env", "GOCACHE", "GOMODCACHE")
	buildCache, moduleCache, _ := strings.Cut(goFolders, "\n")
	engineDir := ""
	if r.engine == "docker" {
		engineDir, _ = engine.Ask(ctx, r.engine, "info", "--format", "{{.DockerRootDir}}")
	}
	for _, p := range []struct {
		name, dir, fix      string
		needed, comfortable uint64
	}{
		// The build cache of an operator takes half a GB, and a run leaves logs.
		{"disk", r.Dir, r.Commands.Down + ", then free space on the disk of this folder", 512 * mega, 2 * giga},
		{"temporary folder", os.TempDir(), "free space in " + os.TempDir() + ", or set TMPDIR to a larger folder", 512 * mega, 2 * giga},
		{"build cache", buildCache, "go clean -cache", 512 * mega, 2 * giga},
		{"module cache", moduleCache, "free space there, or set GOMODCACHE to a larger folder", 512 * mega, 2 * giga},
		// A node copies 0.7 GB out of its image, and a run's logs and images take some hundred MB more.
		{"engine's disk", engineDir, r.Commands.Down + ", then delete images that you do not need: docker image ls", 2 * giga, 6 * giga},
	} {
		if free, err := r.free(p.dir); p.dir != "" && err == nil {
			r.checkRoom(p.name, p.fix, free, p.needed, p.comfortable)
		}
	}
}

// TemporaryFolder says whether the folder for temporary files exists and programs can be run in it: compiled ones are.
// On a file system that is mounted with noexec, nobody may execute a file.
func TemporaryFolder() Finding {
	dir, err := os.MkdirTemp("", "doctor-")
	if err == nil {
		defer os.RemoveAll(dir)
		program := filepath.Join(dir, "program")
		if err = os.WriteFile(program, nil, 0o700); err == nil {
			_, err = exec.LookPath(program)
		}
	}
	if err == nil {
		return Finding{Name: "temporary folder", Detail: "programs can be run in " + os.TempDir()}
	}
	return Finding{
		Name: "temporary folder", Severity: Error, Fix: `mkdir -p "$HOME/tmp" && export TMPDIR="$HOME/tmp"`,
		Detail: fmt.Sprintf("programs cannot be written to and run in %s (TMPDIR): %v", os.TempDir(), err),
	}
}

// FreeMemory is the memory in bytes that new programs can have on this machine, and false where that is not known.
func FreeMemory() (uint64, bool) { return newRun(Options{}).freeMemory() }

func (r *run) freeMemory() (uint64, bool) {
	data, _ := fs.ReadFile(r.files, "proc/meminfo")
	_, after, _ := strings.Cut(string(data), "MemAvailable:")
	var kilo uint64
	_, err := fmt.Sscan(after, &kilo)
	return kilo << 10, err == nil
}

func (r *run) checkGo(ctx context.Context) {
	if r.GoVersion == "" {
		return
	}
	const fix = "install it from https://go.dev/dl"
	// In a folder without a go.mod, the go command does not download another version of itself.
	found, err := engine.Ask(ctx, "go", "env", "-C", "/", "GOVERSION")
	found, _, _ = strings.Cut(found, " ") // experiments follow
	switch {
	case err != nil:
		r.add(Error, "go", fix, "Go is not installed, or does not work: %v", err)
	case version.IsValid(found) && version.Compare(found, "go"+r.GoVersion) < 0:
		r.add(Error, "go", fix, "%s is older than %s", found, r.GoVersion)
	default:
		r.add(Info, "go", "", "%s", found)
	}
}
