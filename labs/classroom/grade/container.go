package grade

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/classroom/judge"
	"github.com/example/operator-lab/labs/hosted"
	"github.com/example/operator-lab/labs/internal/plain"
	"github.com/example/operator-lab/labs/internal/process"
)

const (
	label = "operator-lab.grade"
	image = "operator-lab.local/grade" // has no file
	// memory is what a container may have, its files among it: all of them are in memory. Compiling the libraries of Kubernetes
	// in another version than the course's takes most of it.
	memory = "6g"
	// cpus keep what takes all that it gets from the verdicts beside it.
	cpus = "2"
	// tasks are processes and threads. A verdict has some 300.
	tasks = "4096"
	// limit is for one learner. All labs take six minutes on two quiet cores, and in gVisor three times as long.
	limit = time.Hour
	// answerLimit is how much is read of what a container prints, in bytes. All labs have some hundred kilobytes.
	answerLimit = 16 << 20
	// endLimit is for the end of a container that was asked to end, and for its removal.
	endLimit = time.Minute
)

// Containers are where verdicts are made, one in each.
type Containers struct {
	// Engine is the container engine's command line, such as docker.
	Engine string
	// Runtime is what the engine runs them with, such as runsc, which is gVisor.
	Runtime string
	// Owner tells those of this checkout from others.
	Owner string
	// Kit is what they read.
	Kit *judge.Kit
	// Seed draws names and sizes, for all learners the same.
	Seed int64
}

// Prepare removes what a run that was killed has left, and makes the image, which has no file: two empty blocks are the end of a tar file.
func (c *Containers) Prepare(ctx context.Context) error {
	out, err := c.engine(ctx, nil, "ps", "--all", "--quiet", "--filter", "label="+label+"="+c.Owner)
	if ids := strings.Fields(out); err == nil && len(ids) > 0 {
		err = c.remove(ctx, ids...)
	}
	if err != nil {
		return err
	}
	if _, missing := c.engine(ctx, nil, "image", "inspect", image); missing != nil {
		_, err = c.engine(ctx, bytes.NewReader(make([]byte, 1024)), "import", "-", image)
	}
	return err
}

// Try says why the runtime starts no container, nil when it does.
func (c *Containers) Try(ctx context.Context) error {
	name := newName()
	_, err := c.engine(ctx, nil, c.args(name, c.Kit.Mounts[0].Source, judge.Program, judge.ReadyCommand)...)
	return errors.Join(err, c.remove(context.WithoutCancel(ctx), name))
}

func newName() string { return "operator-lab-grade-" + strings.ToLower(rand.Text()[:10]) }

// Judge has a container judge labs of what was handed in at a path. An error is this machine's fault.
func (c *Containers) Judge(ctx context.Context, path string, labs []int) (answer hosted.Answer, err error) {
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	name := newName()
	numbers := strings.Trim(strings.ReplaceAll(fmt.Sprint(labs), " ", ","), "[]")
	cmd := exec.CommandContext(limited, c.Engine,
		c.args(name, path, judge.Program, hosted.CheckCommand, numbers, strconv.FormatInt(c.Seed, 10))...)
	process.Own(cmd, syscall.SIGTERM) // which the engine's command passes on
	stdout, stderr := &process.Tail{Limit: answerLimit}, &process.Tail{Limit: 4 << 10}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdout, stderr, endLimit
	ended := cmd.Run()
	after := context.WithoutCancel(ctx)
	killed, inspected := c.engine(after, nil, "inspect", "--format", "{{.State.OOMKilled}}", name)
	removed := c.remove(after, name)
	switch {
	case ctx.Err() != nil:
		return answer, errors.Join(ctx.Err(), removed)
	case removed != nil:
		return answer, removed
	case limited.Err() != nil:
		return answer, fmt.Errorf("there was no verdict within %s", limit)
	case inspected == nil && killed == "true":
		return hosted.Answer{Refused: "judging it took more memory than there is for one learner: " + memory}, nil
	}
	if err := json.Unmarshal([]byte(stdout.String()), &answer); err != nil {
		return answer, fmt.Errorf("the container ended without a verdict: %w: %s", errors.Join(ended, err), plain.Line(stderr.String()))
	}
	return answer, nil
}

// args are the engine's, for a container that runs command on what was handed in.
func (c *Containers) args(name, handIn string, command ...string) []string {
	args := []string{
		"run", "--name", name, "--label", label + "=" + c.Owner, "--pull", "never", "--hostname", "grade",
		"--network", "none", "--read-only", "--cap-drop", "ALL", "--security-opt", "no-new-privileges",
		"--memory", memory, "--memory-swap", memory, "--pids-limit", tasks, "--cpus", cpus, "--tmpfs", "/tmp:exec,mode=1777", "--runtime", c.Runtime,
	}
	for _, capability := range hosted.Capabilities() {
		args = append(args, "--cap-add", string(capability))
	}
	for _, entry := range c.Kit.Env {
		args = append(args, "--env", entry)
	}
	for _, m := range append(slices.Clone(c.Kit.Mounts), judge.Mount{Source: handIn, Target: hosted.HandInPath}) {
		// The engine reads these words as a line of CSV, and a learner's name may have a comma.
		source := `"source=` + strings.ReplaceAll(m.Source, `"`, `""`) + `"`
		args = append(args, "--mount", "type=bind,readonly,"+source+",target="+m.Target)
	}
	return append(append(args, image), command...)
}

// remove removes containers, if they are there.
func (c *Containers) remove(ctx context.Context, names ...string) error {
	_, err := c.engine(ctx, nil, append([]string{"rm", "--force", "--volumes"}, names...)...)
	return err
}

// Runtimes are those of the engine, and the one that it uses by default.
func Runtimes(ctx context.Context, engine string) (all []string, standard string, err error) {
	out, err := (&Containers{Engine: engine}).engine(ctx, nil, "info", "--format", "{{json .}}")
	var info struct {
		Runtimes       map[string]any
		DefaultRuntime string
	}
	if err == nil {
		err = json.Unmarshal([]byte(out), &info)
	}
	return slices.Sorted(maps.Keys(info.Runtimes)), info.DefaultRuntime, err
}

// engine runs a command of the engine and returns what it printed.
func (c *Containers) engine(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Engine, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = stdin, &stdout, &stderr, time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", c.Engine, args[0], errors.Join(err, ctx.Err()), strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}
