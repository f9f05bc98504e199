//go:build unix

package schoolday

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/processgroup"
)

const (
	// commandLimit bounds one command; setting up a room on a cold machine is the longest.
	commandLimit = 40 * time.Minute
	// goodbye is how long an interrupted command may clean up.
	goodbye = 3 * time.Minute
)

// ran is how a command ended.
type ran struct {
	code   int
	output string
}

// shell runs a script in the instructor's checkout, as somebody types it there, and keeps what it printed in a file of
// the day's folder. An error is that it could not be run; a code other than 0 is for the caller.
func (d *day) shell(ctx context.Context, name, script string) (ran, error) {
	ctx, cancel := context.WithTimeout(ctx, commandLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n"+script)
	cmd.Dir = d.Root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	politely(cmd)
	err := cmd.Run()
	if keep := os.WriteFile(filepath.Join(d.logs, name+".log"), out.Bytes(), 0o600); keep != nil {
		return ran{}, fmt.Errorf("keep what %s printed: %w", name, keep)
	}
	if ctx.Err() != nil {
		return ran{}, fmt.Errorf("%s: %w", name, ctx.Err())
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && failed.ExitCode() >= 0 {
		return ran{failed.ExitCode(), out.String()}, nil
	}
	if err != nil {
		return ran{}, fmt.Errorf("%s: %w", name, err)
	}
	return ran{0, out.String()}, nil
}

// politely has a command and its children interrupted together, and waited for.
func politely(cmd *exec.Cmd) {
	processgroup.Own(cmd, syscall.SIGINT)
	cmd.WaitDelay = goodbye
}

// instructor runs make targets in the instructor's checkout. They have to succeed.
func (d *day) instructor(ctx context.Context, targets string) error {
	name := "instructor-" + strings.FieldsFunc(targets, func(r rune) bool { return r == ' ' || r == '=' })[0]
	return d.succeed(ctx, name, "make -s "+targets)
}

// succeed runs a script in the instructor's checkout that has to end with code 0.
func (d *day) succeed(ctx context.Context, name, script string) error {
	r, err := d.shell(ctx, name, script)
	if err == nil && r.code != 0 {
		err = fmt.Errorf("%s ended with %d:\n%s", script, r.code, last(r.output))
	}
	return err
}

// last is the end of an output, for an error.
func last(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-20):], "\n")
}
