package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/harness"
)

// Tools are the programs that a run needs besides the learner's.
type Tools struct {
	// Suite is the compiled suite of the course, Ginkgo the program that runs it in parallel.
	Suite, Ginkgo string
	// Guard runs learner programs, ControllerGen is the generator that the course pins.
	Guard, ControllerGen string
}

// BuildTools compiles what the checkout at root needs for a run, into .lab/bin. The Go build cache
// makes it a matter of a second when nothing changed.
func BuildTools(ctx context.Context, root, state string) (Tools, error) {
	bin := filepath.Join(state, "bin")
	tools := Tools{
		Suite: filepath.Join(bin, "labs.test"), Ginkgo: filepath.Join(bin, "ginkgo"),
		Guard: filepath.Join(bin, "guard"), ControllerGen: filepath.Join(bin, "controller-gen"),
	}
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return tools, fmt.Errorf("build tools: %w", err)
	}
	programs := []string{
		"github.com/onsi/ginkgo/v2/ginkgo", "sigs.k8s.io/controller-tools/cmd/controller-gen", "./labs/cmd/guard",
	}
	if err := goCommand(ctx, root, append([]string{"build", "-o", bin + string(filepath.Separator)}, programs...)...); err != nil {
		return tools, err
	}
	return tools, goCommand(ctx, root, "test", "-c", "-o", tools.Suite, "./labs")
}

func goCommand(ctx context.Context, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), dir, err, out))
	}
	return nil
}

// maxBuildLines is how many lines of a compiler's complaint a person reads.
const maxBuildLines = 20

// BuildManager compiles the workspace's ./cmd to out, writing nothing into the workspace. A Build says
// why the learner's code does not compile; an error is not the learner's fault.
func BuildManager(ctx context.Context, workspace, out string) (*Build, error) {
	if why := noModule(workspace); why != "" {
		return &Build{Output: why}, nil
	}
	limited, cancel := context.WithTimeout(ctx, harness.BuildLimit)
	defer cancel()
	cmd, err := harness.Command(limited, workspace, nil, "go", "build", "-buildvcs=false", "-mod=readonly", "-o", out, "./cmd")
	if err != nil {
		return nil, err
	}
	output, err := cmd.CombinedOutput()
	var exited *exec.ExitError
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil:
		return &Build{Output: fmt.Sprintf("the compilation did not end within %s", harness.BuildLimit)}, nil
	case !errors.As(err, &exited):
		return nil, fmt.Errorf("build the manager: %w", err)
	}
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	if len(lines) > maxBuildLines {
		lines = append(lines[:maxBuildLines], fmt.Sprintf("… and %d more lines", len(lines)-maxBuildLines))
	}
	return &Build{Output: strings.ReplaceAll(strings.Join(lines, "\n"), workspace+string(filepath.Separator), "")}, nil
}

// noModule says what keeps a folder from being a Go module, and what to do about it; "" when it is one.
func noModule(workspace string) string {
	if _, err := os.Stat(filepath.Join(workspace, "go.mod")); err == nil {
		return ""
	}
	if entries, err := os.ReadDir(workspace); err == nil && len(entries) == 0 {
		return fmt.Sprintf("%s is empty: remove it (rmdir %s), and the next `make lab-1` makes a workspace there", workspace, workspace)
	}
	return fmt.Sprintf("there is no go.mod in %s: `make undo` brings back what was saved last, `make reset-1` begins anew and saves what is there", workspace)
}
