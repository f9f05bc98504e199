package buildcache

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

// Fill is a folder with what compiling the course's own solution makes, and nothing else of this machine's build
// cache, for builds that nobody trusts: without it each of them would compile the libraries of Kubernetes, which takes
// minutes. It is made once below cache, for each version of Go and of the solution's modules. program is one that answers
// `program cache [-keep] BASE OWN` with [Cache.Serve]; env is that of the Go command, from process.BuildEnv, with the
// module cache that those builds will have.
func Fill(ctx context.Context, c *course.Course, program, cache string, env []string, progress func(line string)) (string, error) {
	solution, err := c.Render(len(c.Labs))
	if err != nil {
		return "", err
	}
	version, err := exec.CommandContext(ctx, "go", "version").Output()
	if err != nil {
		return "", fmt.Errorf("go version: %w", err)
	}
	key := sha256.New()
	for _, part := range [][]byte{version, solution["go.mod"].Data, solution["go.sum"].Data, []byte(setting(env, "GOMODCACHE"))} {
		key.Write(part)
	}
	dir := filepath.Join(cache, "grade", fmt.Sprintf("built-%.6x", key.Sum(nil)))
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
	cmd.Env = append(env, "GOCACHEPROG="+strings.Join([]string{quote(program), "cache", "-keep", quote(setting(env, "GOCACHE")), quote(dir)}, " "))
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

// setting is that of an environment, "" where there is none.
func setting(env []string, name string) string {
	found := ""
	for _, entry := range env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			found = value // the last one counts
		}
	}
	return found
}
