// Package process runs programs that contain a learner's code, and tools of ours that read it. [Own] has a command of ours
// end with all its children.
package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
)

// Unprivileged is the user that a learner's program runs as where there are no others: nobody. See [UserOf].
const Unprivileged = 65534

// Tool prepares a program of ours, or the Go command, that reads a learner's code. It is killed when ctx ends. A Go
// command that is killed leaves its temporary files; they are in the folder tmp and go with it.
func Tool(ctx context.Context, dir, tmp string, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, append(slices.Clone(env), "GOTMPDIR="+tmp)
	Own(cmd, syscall.SIGKILL) // a compiler that outlives the Go command works for nobody
	return cmd
}

// Program prepares a program that contains a learner's code, as [Supervised] does. It runs as the user that [UserOf] gives its home, in
// that folder, and sees env alone.
func Program(ctx context.Context, supervisor, home string, env []string, name string, args ...string) (*exec.Cmd, error) {
	uid, err := UserOf(home)
	if err != nil {
		return nil, err
	}
	cmd, err := Supervised(ctx, supervisor, uid, name, args...)
	if err == nil {
		cmd.Dir, cmd.Env = home, env
	}
	return cmd, err
}

// Supervised prepares a program whose whole process tree ends with it, with ctx, and with this process. It runs under the program
// supervisor, as the user uid; -1 is the current one.
func Supervised(ctx context.Context, supervisor string, uid int, name string, args ...string) (*exec.Cmd, error) {
	read, write, err := os.Pipe() // its other end is the supervisor's file descriptor 3
	if err != nil {
		return nil, fmt.Errorf("make a parent pipe: %w", err)
	}
	cmd := exec.CommandContext(ctx, supervisor, append([]string{"-uid", fmt.Sprint(uid), name}, args...)...)
	cmd.ExtraFiles = []*os.File{read}
	// A signal to this process's group is not for the supervisor: it has to outlive this process by the moment that it takes
	// to end the learner's processes.
	Own(cmd, syscall.SIGTERM)
	cmd.Cancel = func() error { return write.Close() }
	context.AfterFunc(ctx, func() { write.Close() })
	return cmd, nil
}
