// Package sandbox runs programs that contain a learner's code, and tools of ours that read it: as plain processes on
// the learner's own machine, or each in a container of its own where nobody trusts the code.
//
// In a container a program finds what it may read under the paths of this machine, and nothing else of it. There is no
// network. One socket leads out, to the process of ours that started the container (see [Outside]); over it go the
// program's orders, its output, its connections to the one address that it may reach, and what it leaves behind.
package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/processgroup"
)

// Job is a program to run.
type Job struct {
	// Args are the program's path and its arguments. A tool may also be "go".
	Args []string `json:"args"`
	// Dir is the folder to work in: one of Reads, or in Writes.
	Dir string `json:"dir"`
	// Env is the whole environment. What the Go command needs of it, a container sets itself.
	Env []string `json:"env"`
	// Reads are files and folders that the program may read besides itself.
	Reads []string `json:"reads,omitempty"`
	// Writes is a folder that the program may change, "" for none. It begins with what is in the folder.
	Writes string `json:"writes,omitempty"`
	// Returns is how many bytes it may leave in Writes for us; with 0 nothing of that is looked at.
	Returns int64 `json:"returns,omitempty"`
	// Reaches is the one address of this machine that the program may connect to, as host:port; "" is none.
	Reaches string `json:"reaches,omitempty"`
	// Serves is a loopback address that the program may listen on, for this machine to connect to; "" is none.
	Serves string `json:"serves,omitempty"`
}

// returned is the folder of which something is wanted, "" for none.
func (j Job) returned() string {
	if j.Returns == 0 {
		return ""
	}
	return j.Writes
}

// Runner prepares the commands for jobs. Their exit code is the program's own, or one that [Exceeded] knows, or
// [NotStarted], or that of package guard.
type Runner interface {
	// Tool prepares a program of ours, or the Go command, that reads a learner's code. It is killed when ctx ends.
	Tool(ctx context.Context, job Job) (*exec.Cmd, error)
	// Program prepares a program that contains a learner's code. Its whole process tree ends with it, with ctx, and
	// with this process. Dir is its home.
	Program(ctx context.Context, job Job) (*exec.Cmd, error)
	// Delay is how much longer than a plain process it may take to begin.
	Delay() time.Duration
}

var (
	_ Runner = Plain{}
	_ Runner = (*Container)(nil)
)

// Unprivileged is the user that learner programs run as in a container, and where the lab itself runs as root: nobody.
const Unprivileged = 65534

// Plain runs jobs as processes of this machine, for learners who check their own code.
type Plain struct {
	// Guard is the program that runs a learner's program and ends its whole process tree.
	Guard string
}

// Tool prepares a plain process. A Go command that is killed leaves its temporary files; they are in the folder Writes
// and go with it.
func (Plain) Tool(ctx context.Context, job Job) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, job.Args[0], job.Args[1:]...)
	cmd.Dir, cmd.Env = job.Dir, job.Env
	if job.Writes != "" {
		cmd.Env = append(slices.Clone(job.Env), "GOTMPDIR="+job.Writes)
	}
	processgroup.Own(cmd, syscall.SIGKILL) // a compiler that outlives the Go command works for nobody
	return cmd, nil
}

// Program prepares a process under guard. It runs as an unprivileged user when the lab runs as root, and then gets
// its home as its own.
func (p Plain) Program(ctx context.Context, job Job) (*exec.Cmd, error) {
	guarded := []string{}
	if os.Geteuid() == 0 {
		guarded = append(guarded, "-uid", fmt.Sprint(Unprivileged))
		if err := os.Chown(job.Dir, Unprivileged, Unprivileged); err != nil {
			return nil, fmt.Errorf("hand over %s: %w", job.Dir, err)
		}
	}
	cmd, err := tied(ctx, p.Guard, append(guarded, job.Args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env = job.Dir, job.Env
	return cmd, nil
}

// Delay is none.
func (Plain) Delay() time.Duration { return 0 }

// tied prepares a program that watches a lifeline: its file descriptor 3 ends when ctx does, and when this process is
// gone. It then ends what it has started, and itself.
func tied(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a lifeline: %w", err)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.ExtraFiles = []*os.File{read}
	// A signal to this process's group is not for the guard: it has to outlive this process by the moment that it takes
	// to end the learner's processes.
	processgroup.Own(cmd, syscall.SIGTERM)
	cmd.Cancel = func() error { return write.Close() }
	context.AfterFunc(ctx, func() { write.Close() })
	return cmd, nil
}
