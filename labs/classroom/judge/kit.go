package judge

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/share"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Where things are in a container.
const (
	CourseDir = "/lab/course"
	BinDir    = "/lab/bin"
	// CacheDir has what [components.CacheDir] has elsewhere. Nobody can write there.
	CacheDir = "/lab/cache"
	// Program is the first process of a container.
	Program = BinDir + "/judge"

	// builtDir is a build cache, below CacheDir.
	builtDir = "built"
)

// coursePaths are what a verdict reads of the checkout.
var coursePaths = []string{"labs", "operator", "clusters", "docs", "go.mod", "go.sum"}

// Mount is a file or folder of this machine that a container reads.
type Mount struct{ Source, Target string }

// Kit is all that a container needs to judge, and nothing else of this machine: the course, its tools, the control plane's
// programs, Go, public modules, and what the course's solution is compiled of.
type Kit struct {
	Mounts []Mount
	// Env is the environment of the container's processes.
	Env []string
	// Checks tells the checks of one version of the course from others.
	Checks string
}

// NewKit builds what is missing. state and cache are those of verdicts on this machine. The first time takes some minutes.
func NewKit(ctx context.Context, c *course.Course, state, cache string, progress func(line string)) (*Kit, error) {
	progress("compiling the checks")
	tools, err := verdict.BuildTools(ctx, c.Root, state)
	if err != nil {
		return nil, err
	}
	checks, err := digest(tools.Suite)
	if err != nil {
		return nil, err
	}
	bin := filepath.Join(state, "bin")
	program := filepath.Join(bin, filepath.Base(Program))
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return nil, err
	}
	build := process.Tool(ctx, c.Root, os.TempDir(), env, "go", "build", "-o", program, "./labs/classroom/cmd/judge")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the program for containers: %w: %s", errors.Join(err, ctx.Err()), out)
	}
	provider, err := embedded.New(state, cache, progress)
	if err != nil {
		return nil, err
	}
	if _, err := provider.Programs(ctx); err != nil {
		return nil, err
	}
	modCache := filepath.Join(cache, "grade", "modules")
	progress("collecting the modules that learners' code may use, in " + modCache)
	if err := share.Modules(ctx, c, modCache); err != nil {
		return nil, err
	}
	goRoot := setting(env, "GOROOT")
	built, err := compileSolution(ctx, c, cache, append(env, "GOMODCACHE="+modCache), progress)
	if err != nil {
		return nil, err
	}
	kit := &Kit{Checks: checks, Env: []string{
		"PATH=" + filepath.Join(goRoot, "bin") + ":" + BinDir, "HOME=/tmp", "GOROOT=" + goRoot, "GOMODCACHE=" + modCache,
		"GOCACHE=/tmp/go-build", "GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
	}, Mounts: []Mount{
		{goRoot, goRoot}, {modCache, modCache}, // at their own paths, which are a part of what the build cache knows
		{bin, BinDir}, {built, CacheDir + "/" + builtDir}, {filepath.Join(cache, "components"), CacheDir + "/components"},
	}}
	for _, path := range coursePaths {
		kit.Mounts = append(kit.Mounts, Mount{filepath.Join(c.Root, path), CourseDir + "/" + path})
	}
	return kit, nil
}

// compiled marks a build cache that has all that it should.
const compiled = "compiled"

// compileSolution gives a build cache with what compiling the course's own solution makes, and nothing else of this machine's: without
// it each container would compile the libraries of Kubernetes, which takes minutes. It is made once below cache, for each version of Go
// and of the solution's modules. env is that of the Go command, from [process.BuildEnv], with the module cache that containers have.
func compileSolution(ctx context.Context, c *course.Course, cache string, env []string, progress func(line string)) (string, error) {
	solution, err := c.Render(len(c.Labs))
	if err != nil {
		return "", err
	}
	key := sha256.Sum256(fmt.Appendf(nil, "%s %s %s %s", runtime.Version(), setting(env, "GOMODCACHE"), solution["go.mod"].Data, solution["go.sum"].Data))
	dir := filepath.Join(cache, "grade", fmt.Sprintf("built-%.6x", key))
	if _, err := os.Stat(filepath.Join(dir, compiled)); err == nil {
		return dir, nil
	}
	progress("compiling the course's solution once, for what learners' code has in common with it: some minutes")
	work, err := os.MkdirTemp("", "lab-grade-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the solution: %w", err)
	}
	defer os.RemoveAll(work)
	if err := solution.WriteTo(work); err != nil {
		return "", fmt.Errorf("write the solution: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-mod=readonly", process.LinkerFlags, "-o", os.DevNull, "./cmd")
	cmd.Dir, cmd.Env = work, append(env, "GOCACHE="+dir, "GOCACHEPROG=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the solution: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return dir, os.WriteFile(filepath.Join(dir, compiled), nil, 0o644)
}

// setting is that of an environment.
func setting(env []string, name string) string {
	found := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value // the last one counts
		}
	}
	return found
}

func digest(file string) (string, error) {
	f, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	_, err = io.Copy(sum, f)
	return fmt.Sprintf("%x", sum.Sum(nil)), err
}
