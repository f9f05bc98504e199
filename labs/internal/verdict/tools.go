package verdict

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/example/operator-lab/labs/internal/process"
)

// Tools are the programs that a run needs besides the learner's.
type Tools struct {
	// Suite is the compiled suite of the course, Ginkgo the program that runs it in parallel.
	Suite, Ginkgo string
	// Supervisor runs learner programs, ControllerGen is the generator that the course pins.
	Supervisor, ControllerGen string
}

// ToolsIn are those that [BuildTools] has compiled into the folder bin.
func ToolsIn(bin string) Tools {
	return Tools{
		Suite: filepath.Join(bin, "labs.test"), Ginkgo: filepath.Join(bin, "ginkgo"),
		Supervisor: filepath.Join(bin, "supervisor"), ControllerGen: filepath.Join(bin, "controller-gen"),
	}
}

// BuildTools compiles what the checkout at root needs for a run, into .lab/bin. The Go build cache
// makes it a matter of a second when nothing changed.
func BuildTools(ctx context.Context, root, state string) (Tools, error) {
	bin := filepath.Join(state, "bin")
	tools := ToolsIn(bin)
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return tools, fmt.Errorf("build tools: %w", err)
	}
	scratch, remove, err := newScratch()
	if err != nil {
		return tools, err
	}
	defer remove()
	for _, args := range [][]string{
		{"build", "-o", bin + string(filepath.Separator), "github.com/onsi/ginkgo/v2/ginkgo", "sigs.k8s.io/controller-tools/cmd/controller-gen", "./labs/cmd/supervisor"},
		{"test", "-c", "-o", tools.Suite, "./labs"},
	} {
		cmd := exec.CommandContext(ctx, "go", args...)
		process.Own(cmd, syscall.SIGKILL)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOTMPDIR="+scratch)
		if out, err := cmd.CombinedOutput(); err != nil {
			return tools, errors.Join(ctx.Err(), fmt.Errorf("go %s in %s: %w\n%s", strings.Join(args, " "), root, err, out))
		}
	}
	return tools, nil
}
