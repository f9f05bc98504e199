package judge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/example/operator-lab/clusters/embedded"
	"github.com/example/operator-lab/labs/classroom/buildcache"
	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

// Where things are in a container.
const (
	CourseDir = "/lab/course"
	BinDir    = "/lab/bin"
	// CacheDir has what [clusters.CacheDir] has elsewhere. Nobody can write there.
	CacheDir = "/lab/cache"
	// Program is the first process of a container, and answers the Go command's build cache.
	Program = BinDir + "/judge"
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
	if out, err := goCommand(ctx, c.Root, "build", "-o", program, "./labs/classroom/cmd/judge"); err != nil {
		return nil, fmt.Errorf("build the program for containers: %w: %s", err, out)
	}
	provider, err := embedded.New(state, c.Root, cache, embedded.WithLogger(progress))
	if err != nil {
		return nil, err
	}
	if err := provider.Prepare(ctx); err != nil {
		return nil, err
	}
	goRoot, err := goCommand(ctx, c.Root, "env", "GOROOT")
	if err != nil {
		return nil, exit.Environment(fmt.Errorf("go env: %w", err))
	}
	modCache := filepath.Join(cache, "grade", "modules")
	progress("collecting the modules that learners' code may use, in " + modCache)
	if err := fill(ctx, c, modCache); err != nil {
		return nil, err
	}
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return nil, err
	}
	built, err := buildcache.Fill(ctx, c, program, cache, append(env, "GOMODCACHE="+modCache), progress)
	if err != nil {
		return nil, err
	}
	kit := &Kit{Checks: checks, Env: []string{
		"PATH=" + filepath.Join(goRoot, "bin") + ":" + BinDir, "HOME=/tmp", "GOROOT=" + goRoot, "GOMODCACHE=" + modCache,
		"GOCACHE=/tmp/go-build", "GOCACHEPROG=" + Program + " cache " + built + " /tmp/built",
		"GOPROXY=off", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOTELEMETRY=off",
	}}
	// Go and modules are at their own paths, which are a part of what the build cache knows.
	for _, dir := range []string{goRoot, modCache, built} {
		kit.Mounts = append(kit.Mounts, Mount{dir, dir})
	}
	for _, name := range []string{"components", "embedded"} {
		kit.Mounts = append(kit.Mounts, Mount{filepath.Join(cache, name), CacheDir + "/" + name})
	}
	for _, path := range coursePaths {
		kit.Mounts = append(kit.Mounts, Mount{filepath.Join(c.Root, path), CourseDir + "/" + path})
	}
	kit.Mounts = append(kit.Mounts, Mount{bin, BinDir})
	return kit, nil
}

// fill puts the modules of a workspace into a cache of their own: that of this machine has private ones, too.
func fill(ctx context.Context, c *course.Course, modCache string) error {
	scratch, err := os.MkdirTemp("", "lab-kit-")
	if err != nil {
		return fmt.Errorf("collect modules: %w", err)
	}
	defer os.RemoveAll(scratch)
	needs, err := modules.Needs(c, scratch, false)
	if err != nil {
		return err
	}
	return modules.FillCache(ctx, modCache, needs[0])
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	out, err := cmd.Output()
	return string(bytes.TrimSpace(out)), errors.Join(err, ctx.Err())
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
