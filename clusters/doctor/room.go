package doctor

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	mega = 1 << 20
	giga = 1 << 30

	// Each node copies 0.7 GB out of its image, and logs and images of a lab take
	// some hundred MB more. The node image itself is 1 to 2 GB.
	engineDiskStops = 2 * giga
	engineDiskWarns = 6 * giga
	// The learner's module is compiled into the build cache (half a GB), and a run
	// leaves logs.
	rootDiskStops = 512 * mega
	rootDiskWarns = 2 * giga
	// An idle node takes up to 0.55 GB, compiling an operator as much again.
	memoryStops = 1 * giga
	memoryWarns = 3 * giga

	temporaryFiles = "temporary files"
)

// checkRoom looks at disk and memory.
func (e *examination) checkRoom(ctx context.Context) {
	e.checkDisks(ctx)
	if free, ok := e.engineDisk(ctx); ok {
		e.checkDisk("engine's disk", "make down, then delete images that you do not need ("+e.engine+" image ls)", free, engineDiskStops, engineDiskWarns)
	}
	e.checkMemory()
}

// place is somewhere that a run or a compilation of it writes to.
type place struct {
	name, path, fix string
	free            uint64
}

// places are those that can be looked at. They may be on file systems of their own,
// and the one for temporary files is often small.
func (e *examination) places(ctx context.Context) []place {
	var found []place
	for _, p := range []place{
		{name: "disk", path: e.Root, fix: "make down, then delete .lab/artifacts"},
		{name: temporaryFiles, path: os.TempDir(), fix: "free space in " + os.TempDir() + ", or set TMPDIR to a roomier folder"},
		{name: "build cache", path: e.goFolder(ctx, "GOCACHE"), fix: "go clean -cache"},
		{name: "module cache", path: e.goFolder(ctx, "GOMODCACHE"), fix: "free space there, or set GOMODCACHE to a roomier folder"},
	} {
		if p.path == "" {
			continue
		}
		free, err := e.free(p.path)
		if err != nil {
			continue
		}
		p.free = free
		found = append(found, p)
	}
	return found
}

// TemporaryFiles says whether the folder for temporary files is there, and whether what is written into it can be run:
// programs are compiled there. Of a file system mounted with noexec, the kernel says that nobody may execute it.
func TemporaryFiles() Finding {
	const fix = `mkdir -p "$HOME/tmp" && export TMPDIR="$HOME/tmp"`
	f := Finding{Name: temporaryFiles, Severity: Stops, Fix: fix}
	file, err := os.CreateTemp("", "operator-lab-")
	if err != nil {
		f.Detail = fmt.Sprintf("the folder (TMPDIR) cannot be written to: %v", err)
		return f
	}
	defer func() { _ = os.Remove(file.Name()) }()
	err = errors.Join(file.Chmod(0o700), file.Close())
	if err == nil {
		_, err = exec.LookPath(file.Name())
	}
	if err != nil {
		f.Detail = fmt.Sprintf("no program can be run in %s (TMPDIR), perhaps because it is mounted with noexec: %v", os.TempDir(), err)
		return f
	}
	return Finding{Name: temporaryFiles, OK: true, Severity: Tells, Detail: "programs can be run in " + os.TempDir()}
}

func (e *examination) checkDisks(ctx context.Context) {
	if f := TemporaryFiles(); !f.OK {
		e.findings = append(e.findings, f)
	}
	for _, p := range e.places(ctx) {
		e.checkDisk(p.name, p.fix, p.free, rootDiskStops, rootDiskWarns)
	}
}

// goFolder is a folder of the go command that exists, or the one above it that does;
// "" when it cannot be asked.
func (e *examination) goFolder(ctx context.Context, setting string) string {
	dir, err := e.run(ctx, "go", "env", setting)
	if err != nil || dir == "" {
		return ""
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := e.free(dir); err == nil {
			break
		}
	}
	return dir
}

func (e *examination) checkDisk(name, fix string, free, stops, warns uint64) {
	switch {
	case free < stops:
		e.bad(Stops, name, fix, "%s free, and a lab needs %s", size(free), size(stops))
	case free < warns:
		e.bad(Warns, name, fix, "%s free; %s would be comfortable", size(free), size(warns))
	default:
		e.ok(name, "%s free", size(free))
	}
}

// engineDisk is the space where the engine keeps images and containers.
func (e *examination) engineDisk(ctx context.Context) (uint64, bool) {
	if e.inside != nil && e.inside.disk > 0 {
		return e.inside.disk, true
	}
	if e.engine != "docker" || !e.local {
		return 0, false
	}
	dir, err := e.run(ctx, e.engine, "info", "--format", "{{.DockerRootDir}}")
	if err != nil {
		return 0, false
	}
	free, err := e.free(dir)
	return free, err == nil
}

// fixMemory makes room for a cluster and a compilation.
const fixMemory = "make down, then close other programs"

func (e *examination) checkMemory() {
	const name = "memory"
	available, ok := e.memory()
	switch {
	case !ok:
		return
	case available < memoryStops:
		e.bad(Stops, name, fixMemory, "%s available, and a lab needs %s", size(available), size(memoryStops))
	case available < memoryWarns:
		e.bad(Warns, name, fixMemory, "%s available; %s would be comfortable", size(available), size(memoryWarns))
	default:
		e.ok(name, "%s available", size(available))
	}
}

// FreeMemory is how many bytes of memory new programs can have on this machine, and false where that is not
// known: an engine in a virtual machine of its own has other memory.
func FreeMemory() (uint64, bool) {
	e := examination{machine: thisMachine()}
	return e.memory()
}

// memory is what is available to nodes, in bytes.
func (e *examination) memory() (uint64, bool) {
	if e.inside != nil && e.inside.memory > 0 {
		return e.inside.memory, true
	}
	text, ok := e.field("proc/meminfo", "MemAvailable")
	if !ok {
		return 0, false
	}
	var kilo uint64
	_, err := fmt.Sscanf(text, "%d kB", &kilo)
	return kilo << 10, err == nil
}

func size(n uint64) string {
	if n < giga {
		return fmt.Sprintf("%d MB", n/mega)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/giga)
}

// checkTools looks at the programs that labs call.
func (e *examination) checkTools(ctx context.Context) {
	e.checkGo(ctx)
	if _, err := e.look("git"); err != nil {
		e.bad(Stops, "git", "sudo apt-get install git", "git is not installed; it keeps the learner's work safe")
	} else {
		e.ok("git", "installed")
	}
}

func (e *examination) checkGo(ctx context.Context) {
	if e.GoVersion == "" {
		return
	}
	const fix = "install it from https://go.dev/dl"
	// What matters is the Go that compiles without fetching another one, as it would inside of the checkout.
	found, err := e.run(ctx, "go", "env", "-C", "/", "GOVERSION")
	found, _, _ = strings.Cut(found, " ") // experiments follow
	switch {
	case err != nil:
		e.bad(Stops, "go", fix, "Go is not installed, or does not work: %s", firstLine(err.Error()))
	case !version.IsValid(found):
		e.bad(Tells, "go", "", "version %q, a build of somebody's own", found)
	case version.Compare(found, "go"+e.GoVersion) < 0:
		e.bad(Stops, "go", fix, "%s is older than %s, which the labs need", found, e.GoVersion)
	default:
		e.ok("go", "%s", found)
	}
}

const (
	// slack is what a clock may be behind the files of the checkout: they may come
	// from a machine whose own clock is a little ahead.
	slack = 10 * time.Minute
	// drift is what the engine's clock may differ: certificates of a cluster are
	// valid from the moment that the node made them.
	drift = time.Minute
)

// checkClock compares the clock with the two other sources of time that there
// are: files of the checkout, which are not from the future, and the engine's
// clock, which in a virtual machine stands still while a laptop sleeps.
func (e *examination) checkClock() {
	const name, fix = "clock", "sudo timedatectl set-ntp true"
	now := e.now()
	written, err := e.modified(filepath.Join(e.Root, "go.mod"))
	if err == nil && now.Before(written.Add(-slack)) {
		e.bad(Stops, name, fix, "it says %s, but this checkout was written on %s",
			now.Format(time.DateTime), written.Format(time.DateTime))
		return
	}
	if e.inside != nil {
		if off := e.inside.clock.Sub(e.inside.asked).Abs(); off > drift {
			e.bad(Stops, name, "restart the container engine", "the engine's clock differs by %v", off.Round(time.Second))
			return
		}
	}
	e.ok(name, "%s", now.UTC().Format(time.RFC3339))
}
