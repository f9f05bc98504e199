// Package process runs programs that contain a learner's code, and tools of ours that read it: as plain processes on
// the learner's own machine, or through a [Launcher] that keeps code that nobody trusts apart from this machine. [Own] has a
// command of ours end with all its children.
package process

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// Job is a program to run.
type Job struct {
	// Args are the program's path and its arguments. A tool may also be "go".
	Args []string `json:"args"`
	// Dir is the folder to work in: one of Reads, or in Writes.
	Dir string `json:"dir"`
	// Env is the whole environment. What the Go command needs of it, a launcher sets itself.
	Env []string `json:"env"`
	// Reads are files and folders that the program may read besides itself.
	Reads []string `json:"reads,omitempty"`
	// Writes is a folder that the program may change, "" for none. It begins with what is in the folder.
	Writes string `json:"writes,omitempty"`
	// Returns is how many bytes it may leave in Writes for us; with 0 nothing of that is looked at.
	Returns int64 `json:"returns,omitempty"`
	// Reaches are the addresses of this machine that the program may connect to, each as host:port.
	Reaches []string `json:"reaches,omitempty"`
	// Serves is a loopback address that the program may listen on, for this machine to connect to; "" is none.
	Serves string `json:"serves,omitempty"`
}

// Exit codes of a launcher that are not those of the program. If the program itself exits with one of them, the launcher
// exits with 1.
const (
	// NotStarted: the launcher could not start the program. It says nothing about the program.
	NotStarted = 123
	// TooMuchOutput: the program was ended because it printed more than [OutputLimit].
	TooMuchOutput = 122
)

// OutputLimit is how many bytes a learner's program may print where a launcher runs it.
const OutputLimit = 256 << 20

// Exceeded says which limit a program was ended for whose exit code this is, "" for none. It completes a sentence that
// begins with the program.
func Exceeded(code int) string {
	if code == TooMuchOutput {
		return fmt.Sprintf("printed more than %d MiB", OutputLimit>>20)
	}
	return supervisor.Exceeded(code)
}

// Unprivileged is the user that a learner's program runs as in containers: nobody. On this machine see [UserOf].
const Unprivileged = 65534

// LauncherCgroup is the control group, among the parents of that of a program, by which what a launcher's programs take of
// the processor is told from what others take. The engine gives it to every program of a container, whatever its runtime.
// Where systemd manages control groups, its name ends in [SliceSuffix].
const LauncherCgroup = "operator-lab"

// SliceSuffix ends the names of control groups that systemd manages.
const SliceSuffix = ".slice"

// startDelay is how much longer a launched program may take to begin. A container takes half a second on a quiet machine.
const startDelay = 15 * time.Second

// Launcher is a program of ours that runs jobs for us somewhere else, such as in containers. It behaves towards its parent
// process as the program itself would: it passes on output, SIGTERM and the exit code, and what the program leaves in
// [Job.Writes]. It travels to the processes of a run as JSON.
type Launcher struct {
	// Command is the launcher and its first arguments. "tool FILE" follows for a program of ours that reads a learner's
	// code, and "program FILE" for one that contains it. FILE has the Job as JSON; the launcher removes it, and may leave
	// sockets beside it while it runs. A "program" ends when file descriptor 3, a pipe, does.
	Command []string `json:"command"`
	// Scratch is an existing folder for those files. Its path has to be short, for the sake of sockets.
	Scratch string `json:"scratch"`
}

// Runner prepares the commands for jobs. Their exit code is the program's own, or one that [Exceeded] knows, or
// [NotStarted], or that of package supervisor.
type Runner struct {
	// Supervisor is the program that runs a learner's program as a plain process and ends its whole process tree.
	Supervisor string
	// Launcher runs all jobs; nil runs them as plain processes.
	Launcher *Launcher
}

// Tool prepares a program of ours, or the Go command, that reads a learner's code. It is killed when ctx ends. A Go
// command that is killed leaves its temporary files; they are in the folder Writes and go with it.
func (r Runner) Tool(ctx context.Context, job Job) (*exec.Cmd, error) {
	if r.Launcher != nil {
		args, err := r.Launcher.args("tool", job)
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir = r.Launcher.Scratch
		return cmd, nil
	}
	cmd := exec.CommandContext(ctx, job.Args[0], job.Args[1:]...)
	cmd.Dir, cmd.Env = job.Dir, job.Env
	if job.Writes != "" {
		cmd.Env = append(slices.Clone(job.Env), "GOTMPDIR="+job.Writes)
	}
	Own(cmd, syscall.SIGKILL) // a compiler that outlives the Go command works for nobody
	return cmd, nil
}

// Program prepares a program that contains a learner's code. Its whole process tree ends with it, with ctx, and with
// this process. Dir is its home. As a plain process it runs under the supervisor, as the user that [UserOf] its home gives.
func (r Runner) Program(ctx context.Context, job Job) (*exec.Cmd, error) {
	if r.Launcher != nil {
		args, err := r.Launcher.args("program", job)
		if err != nil {
			return nil, err
		}
		cmd, err := tied(ctx, args[0], args[1:]...)
		if err != nil {
			return nil, err
		}
		cmd.Dir = r.Launcher.Scratch
		return cmd, nil
	}
	uid, err := UserOf(job.Dir)
	if err != nil {
		return nil, err
	}
	cmd, err := tied(ctx, r.Supervisor, append([]string{"-uid", fmt.Sprint(uid)}, job.Args...)...)
	if err != nil {
		return nil, err
	}
	cmd.Dir, cmd.Env = job.Dir, job.Env
	return cmd, nil
}

// Delay is how much longer than a plain process a job may take to begin.
func (r Runner) Delay() time.Duration {
	if r.Launcher == nil {
		return 0
	}
	return startDelay
}

// args writes the job down and gives the launcher's command line for it.
func (l *Launcher) args(kind string, job Job) ([]string, error) {
	data, err := json.Marshal(job)
	if err != nil {
		return nil, fmt.Errorf("write a job: %w", err)
	}
	file := filepath.Join(l.Scratch, "job-"+rand.Text()[:10])
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return nil, fmt.Errorf("write a job: %w", err)
	}
	return append(slices.Clone(l.Command), kind, file), nil
}

// tied prepares a program that watches a parent pipe: its file descriptor 3 ends when ctx does, and when this process is
// gone. It then ends what it has started, and itself.
func tied(ctx context.Context, name string, args ...string) (*exec.Cmd, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("make a parent pipe: %w", err)
	}
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.ExtraFiles = []*os.File{read}
	// A signal to this process's group is not for the supervisor: it has to outlive this process by the moment that it takes
	// to end the learner's processes.
	Own(cmd, syscall.SIGTERM)
	cmd.Cancel = func() error { return write.Close() }
	context.AfterFunc(ctx, func() { write.Close() })
	return cmd, nil
}
