package env

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/process"
)

// untrusted prepares a program that contains the learner's code. It sees PATH, its home, TMPDIR and env alone, and its
// whole process tree ends with it, with ctx, and with this process. It runs as a user of its own when the lab runs as root.
func untrusted(ctx context.Context, home string, env []string, program string, args ...string) (*exec.Cmd, error) {
	env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "TMPDIR=" + home}, env...)
	cmd, err := process.Program(ctx, current.config.Supervisor, home, env, program, args...)
	if err != nil {
		return nil, finding.Machine("start a program", err)
	}
	cmd.WaitDelay = StopTimeout
	return cmd, nil
}

// homeFor makes an empty folder for one untrusted program, below the run's scratch folder.
func homeFor(name string) (string, error) {
	dir, err := os.MkdirTemp(current.config.Scratch, strings.ReplaceAll(name, string(filepath.Separator), "-")+"-")
	if err != nil {
		return "", fmt.Errorf("make a home for %s: %w", name, err)
	}
	return dir, nil
}
