package grade

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/process"
)

// complete marks a build cache that has all that it should.
const complete = "complete"

// BuildCache is a folder with what compiling the course's own solution makes, and nothing else of this machine's build
// cache, for builds that nobody trusts: without it each of them would compile the libraries of Kubernetes, which takes
// minutes. It is made once for each version of Go and of the solution's modules. shim is the program labs/classroom/cmd/sandbox-shim.
func BuildCache(ctx context.Context, c *course.Course, shim, cache string, progress func(line string)) (string, error) {
	solution, err := c.Render(len(c.Labs))
	if err != nil {
		return "", err
	}
	env, err := process.BuildEnv(ctx)
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return "", fmt.Errorf("go version: %w", err)
	}
	modules := sha256.Sum256(append(append(version, solution["go.mod"].Data...), solution["go.sum"].Data...))
	dir := filepath.Join(cache, "grade", fmt.Sprintf("built-%.6x", modules))
	if _, err := os.Stat(filepath.Join(dir, complete)); err == nil {
		return dir, nil
	}
	progress("compiling the course's solution once, for what learners' code has in common with it")
	work, err := os.MkdirTemp("", "lab-grade-")
	if err != nil {
		return "", fmt.Errorf("make a folder for the solution: %w", err)
	}
	defer os.RemoveAll(work)
	if err := errors.Join(solution.WriteTo(filepath.Join(work, "workspace")), os.MkdirAll(dir, 0o755)); err != nil {
		return "", fmt.Errorf("write the solution: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-mod=readonly", process.LinkerFlags, "-o", filepath.Join(work, "manager"), "./cmd")
	cmd.Dir = filepath.Join(work, "workspace")
	cmd.Env = append(env, "GOCACHEPROG="+strings.Join([]string{quote(shim), "cache", "-keep", quote(setting(env, "GOCACHE")), quote(dir)}, " "))
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("compile the solution: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return dir, os.WriteFile(filepath.Join(dir, complete), nil, 0o644)
}

// quote is a word of GOCACHEPROG.
func quote(word string) string {
	if strings.ContainsAny(word, " \t") {
		return `"` + word + `"`
	}
	return word
}

func setting(env []string, name string) string {
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}
