// Package sandbox runs programs that contain a learner's code, and tools of ours that read it, each in a container of its
// own, for a judge who trusts none of it.
//
// In a container a program finds what it may read under the paths of this machine, and nothing else of it. There is no
// network. One socket leads out, to the process of ours that started the container (see [Run]); over it go the program's
// orders, its output, its connections to the addresses that it may reach, and what it leaves behind.
//
// These are the proxy of a run, which refuses more ([apiproxy.AdmissionRule]), and its registry, which keeps little. What the
// program makes the cluster run has rules of its own ([apiproxy.InstallPodPolicy], [clusters.PodIsolator]).
package sandbox

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

const (
	// imageRef is an image with nothing but two lines of text in it: all that runs in a container is brought along.
	imageRef = "operator-lab.local/sandbox:1"
	// label marks our containers; its value says whose they are.
	label = "operator-lab.sandbox"
	// engineLimit bounds a command of the container engine that starts nothing.
	engineLimit = 30 * time.Second
	// sweepPeriod is the time from one look at what is left to the next.
	sweepPeriod = 200 * time.Millisecond
)

// Where things are in a container that are not where they are on this machine.
const (
	shimPath   = "/lab/sandbox-shim"
	socketPath = "/lab/socket"
	cachePath  = "/lab/cache"
	tmpPath    = "/tmp"
)

// limits are what a container may take of the machine, in bytes where nothing else is said.
type limits struct {
	// Memory includes what lies in the container's folders, all of which are in memory.
	Memory int64 `json:"memory"`
	// Kernel is what the kernel may keep for it: threads, page tables, open files and who waits for them; 0 is no limit.
	Kernel int64 `json:"kernel"`
	// Tasks are processes and threads.
	Tasks int `json:"tasks"`
	// Tmp and Writes are the sizes of its two writable folders, File that of one file.
	Tmp    int64 `json:"tmp"`
	Writes int64 `json:"writes"`
	File   int64 `json:"file"`
	// Output is what it may print.
	Output int64 `json:"output"`
	// Supervisor is watched over in the container, so that the finding can say what was too much.
	Supervisor supervisor.Limits `json:"supervisor"`
}

var (
	// toolLimits have room for compiling the libraries of Kubernetes from nothing, which the build cache lacks in another
	// version than the course's: that takes 2 GiB of Tmp, where the Go command has each package twice.
	toolLimits = limits{Memory: 5 << 30, Tasks: 512, Tmp: 3 << 30, Writes: 512 << 20, File: 512 << 20, Output: 4 << 20}
	// programLimits have room for what a learner's program may take anywhere, so that the answer is the same; but for files,
	// which are in memory here. Kernel is 2 MiB for a manager. Some of what it is for is limited for each user of a node, and all
	// sandboxes there are one: those who wait for files take 192 bytes each, and all of them on a node of 24 GB are 1 GB
	// (fs.epoll.max_user_watches).
	programLimits = limits{
		Memory: 1536 << 20, Kernel: 32 << 20, Tasks: 400, Tmp: 64 << 20, Writes: 64 << 20, File: 64 << 20, Output: process.OutputLimit,
		Supervisor: supervisor.Limits{Memory: supervisor.DefaultLimits.Memory, Processes: supervisor.DefaultLimits.Processes, Threads: 400},
	}
)

// Container runs each job in a container of its own. It travels as JSON to the program sandbox-shim, which runs them.
type Container struct {
	// Engine is the container engine's command line, such as docker.
	Engine string `json:"engine"`
	// Runtime is what the engine runs containers with, such as runsc, which is gVisor; "" is the engine's default. It has
	// to let a container open a Unix socket of this machine (for runsc: --host-uds=open).
	Runtime string `json:"runtime,omitempty"`
	// PlainCgroups says that the name of a control group must not end in .slice. [Container.Prepare] asks the engine.
	PlainCgroups bool `json:"plainCgroups,omitempty"`
	// Shim is the path of our program on both sides of a container (labs/classroom/cmd/sandbox-shim), statically linked.
	Shim string `json:"shim"`
	// Owner says whose containers these are, for [Container.Sweep].
	Owner string `json:"owner"`
	Toolchain
}

// BuildShim compiles the program sandbox-shim of the checkout at root into the folder dir, and returns its path.
func BuildShim(ctx context.Context, root, dir string) (string, error) {
	shim := filepath.Join(dir, filepath.Base(shimPath))
	cmd := exec.CommandContext(ctx, "go", "build", "-o", shim, "./labs/classroom/cmd/sandbox-shim")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program for containers: %w\n%s", errors.Join(err, ctx.Err()), out)
	}
	return shim, nil
}

// Prepare sees to it that containers can be started.
func (c *Container) Prepare(ctx context.Context) error {
	if runtime.GOOS != "linux" {
		return errors.New("containers for code that nobody trusts need Linux (on Windows: WSL2)")
	}
	if c.Runtime != "" {
		if all, _, err := c.Runtimes(ctx); err != nil || !slices.Contains(all, c.Runtime) {
			return errors.Join(fmt.Errorf("%s has no runtime %q; it has %s", c.Engine, c.Runtime, strings.Join(all, ", ")), err)
		}
	}
	if err := errors.Join(c.askForCgroups(ctx), c.askForLimits(ctx)); err != nil {
		return err
	}
	if _, err := c.engine(ctx, nil, "image", "inspect", "--format", "{{.Id}}", imageRef); err == nil || ctx.Err() != nil {
		return ctx.Err()
	}
	image, err := imageArchive()
	if err != nil {
		return err
	}
	_, err = c.engine(ctx, image, "import", "-", imageRef)
	return err
}

// askForCgroups finds out how the name of a control group has to end. Docker takes one with .slice whatever manages its control
// groups, and podman without systemd does not.
func (c *Container) askForCgroups(ctx context.Context) error {
	if c.Engine != "podman" {
		return nil
	}
	manager, err := c.engine(ctx, nil, "info", "--format", "{{.Host.CgroupManager}}")
	c.PlainCgroups = strings.TrimSpace(manager) != "systemd"
	return err
}

// askForLimits wants an engine that keeps the limits of a container. Docker starts it all the same where the kernel cannot keep them.
func (c *Container) askForLimits(ctx context.Context) error {
	if c.Engine != "docker" {
		return nil
	}
	kept, err := c.engine(ctx, nil, "info", "--format", "{{.MemoryLimit}} {{.PidsLimit}}")
	if err == nil && strings.TrimSpace(kept) != "true true" {
		err = errors.New("the container engine cannot limit the memory and the processes of a container on this machine (docker info says why), and code that nobody trusts runs nowhere else")
	}
	return err
}

// cgroup is the control group above those of all containers.
func (c *Container) cgroup() string {
	if c.PlainCgroups {
		return process.LauncherCgroup
	}
	return process.LauncherCgroup + process.SliceSuffix
}

// Runtimes are those that the engine knows, and which of them is its default. Only docker tells.
func (c *Container) Runtimes(ctx context.Context) (all []string, standard string, err error) {
	out, err := c.engine(ctx, nil, "info", "--format", "{{json .}}")
	if err != nil {
		return nil, "", err
	}
	var info struct {
		Runtimes       map[string]any
		DefaultRuntime string
	}
	if err := json.Unmarshal([]byte(out), &info); err != nil {
		return nil, "", fmt.Errorf("%s info: %w", c.Engine, err)
	}
	return slices.Sorted(maps.Keys(info.Runtimes)), info.DefaultRuntime, nil
}

// imageArchive is the root file system of a container.
func imageArchive() ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, f := range []struct{ name, text string }{
		{"etc/passwd", fmt.Sprintf("nobody:x:%d:%[1]d:nobody:/tmp:/none\n", process.Unprivileged)},
		{"etc/group", fmt.Sprintf("nogroup:x:%d:\n", process.Unprivileged)},
	} {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: 0o644, Size: int64(len(f.text))}); err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
		if _, err := w.Write([]byte(f.text)); err != nil {
			return nil, fmt.Errorf("make image: %w", err)
		}
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("make image: %w", err)
	}
	return b.Bytes(), nil
}

// Sweep removes all containers of the owner, whoever started them, and returns when they are gone.
func (c *Container) Sweep(ctx context.Context) error {
	tick := time.NewTicker(sweepPeriod)
	defer tick.Stop()
	for {
		out, err := c.engine(ctx, nil, "ps", "--all", "--quiet", "--filter", "label="+label+"="+c.Owner)
		ids := strings.Fields(out)
		if err != nil || len(ids) == 0 {
			return err
		}
		// An error may say that the engine is at it already; the next look tells.
		_, failed := c.engine(ctx, nil, append([]string{"rm", "--force", "--volumes"}, ids...)...)
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), failed)
		case <-tick.C:
		}
	}
}

// engine runs a command of the engine and returns what it printed.
func (c *Container) engine(ctx context.Context, stdin []byte, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, engineLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.Engine, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w: %s", c.Engine, args[0], errors.Join(err, ctx.Err()), strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Launcher writes the container's settings to a file, and gives the launcher that reads them there. The caller sets its
// Scratch.
func (c *Container) Launcher(file string) (*process.Launcher, error) {
	if err := writeJSON(file, c); err != nil {
		return nil, fmt.Errorf("write the settings of containers: %w", err)
	}
	return &process.Launcher{Command: []string{c.Shim, "run", file}}, nil
}

// Toolchain is what a build reads.
type Toolchain struct {
	// GoRoot, ModCache and BuildCache are the Go toolchain, the module cache, and a build cache as package buildcache keeps it.
	GoRoot     string `json:"goRoot"`
	ModCache   string `json:"modCache"`
	BuildCache string `json:"buildCache"`
}

// tool completes a job that may be one of the Go command. Its environment is that of a build that runs nothing of a learner's,
// downloads nothing, and writes nothing that outlives it. shim is our program.
func (c Toolchain) tool(job process.Job, shim string) process.Job {
	if job.Args[0] == "go" {
		job.Args = append([]string{filepath.Join(c.GoRoot, "bin", "go")}, job.Args[1:]...)
	}
	job.Env = []string{
		"PATH=" + filepath.Join(c.GoRoot, "bin"), "HOME=" + tmpPath, "TMPDIR=" + tmpPath,
		"CGO_ENABLED=0", "GOWORK=off", "GOENV=off", "GOFLAGS=-buildvcs=false", "GOTOOLCHAIN=local", "GOPROXY=off", "GOSUMDB=off",
		"GOTELEMETRY=off", "GOROOT=" + c.GoRoot, "GOMODCACHE=" + c.ModCache, "GOPATH=" + filepath.Join(tmpPath, "go"),
		"GOCACHE=" + filepath.Join(tmpPath, "go-build"), "GOCACHEPROG=" + shim + " cache " + c.BuildCache + " " + filepath.Join(tmpPath, "built"),
	}
	return job
}

// mount is something of this machine that a container sees, read only.
type mount struct{ source, target string }

// request is one job to run in a container.
type request struct {
	Container
	job        process.Job
	limits     limits
	engineArgs []string // without name and socket
	name       string   // of the container
	scratch    string   // where the socket may be
}

// tool asks for a container that has the Go toolchain, modules and a build cache to read.
func (c Container) tool(job process.Job) (request, error) {
	job = Toolchain{c.GoRoot, c.ModCache, cachePath}.tool(job, shimPath)
	return c.request(job, toolLimits, mount{c.GoRoot, c.GoRoot}, mount{c.ModCache, c.ModCache}, mount{c.BuildCache, cachePath})
}

// program completes a job of a learner's: it finds no other program.
func program(job process.Job) process.Job {
	job.Env = append(slices.Clone(job.Env), "PATH=")
	return job
}

// program asks for a container that has nothing to read but the program and what the job names.
func (c Container) program(job process.Job) (request, error) {
	return c.request(program(job), programLimits)
}

func (c Container) request(job process.Job, l limits, mounts ...mount) (request, error) {
	mounts = append(mounts, mount{c.Shim, shimPath})
	for _, path := range append([]string{job.Args[0]}, job.Reads...) {
		if !slices.ContainsFunc(mounts, func(m mount) bool { return within(path, m.target) }) {
			mounts = append(mounts, mount{path, path})
		}
	}
	args, err := c.engineArgs(job, l, mounts)
	return request{Container: c, job: job, limits: l, engineArgs: args}, err
}

// within says whether path is dir, or below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+string(filepath.Separator))
}

// engineArgs are the arguments of the engine's run for a job, without name, socket and image.
func (c Container) engineArgs(job process.Job, l limits, mounts []mount) ([]string, error) {
	user := strconv.Itoa(process.Unprivileged)
	args := []string{
		"run", "--detach", "--rm", "--pull", "never", "--label", label + "=" + c.Owner, "--hostname", "learner",
		"--cgroup-parent", c.cgroup(),
		"--network", "none", "--ipc", "none", "--log-driver", "none",
		"--cap-drop", "ALL", "--security-opt", "no-new-privileges", "--user", user + ":" + user, "--read-only",
		"--memory", size(l.Memory), "--memory-swap", size(l.Memory), "--pids-limit", strconv.Itoa(l.Tasks),
		"--ulimit", "nofile=4096:4096", "--ulimit", "fsize=" + size(l.File) + ":" + size(l.File),
		"--sysctl", "net.ipv4.tcp_rmem=" + queueSizes, "--sysctl", "net.ipv4.tcp_wmem=" + queueSizes,
		"--mount", tmpfs(tmpPath, l.Tmp),
	}
	if c.Runtime != "" {
		args = append(args, "--runtime", c.Runtime)
	}
	if job.Writes != "" {
		args = append(args, "--mount", tmpfs(job.Writes, l.Writes))
	}
	for _, m := range mounts {
		args = append(args, "--mount", "type=bind,source="+m.source+",target="+m.target+",readonly")
	}
	for _, arg := range append([]string{job.Writes}, job.Reads...) {
		if strings.ContainsAny(arg, ",\"\n") {
			return nil, fmt.Errorf("%q cannot be given to a container: its name has a comma, a quote or a line break", arg)
		}
	}
	return args, nil
}

// queueSizes are the least, the first and the largest size of a connection's queues, in bytes. What is in them is the machine's memory
// (tcp_mem, https://docs.kernel.org/networking/ip-sysctl.html), which is counted for nobody, and single bytes take thousands of times
// as much of it. When it is all taken, nobody's connections go on. Sandboxes in Pods have the same (labs/classroom/hosting/chart).
const queueSizes = "4096 16384 65536"

func size(n int64) string { return strconv.FormatInt(n, 10) }

func tmpfs(target string, bytes int64) string {
	return "type=tmpfs,target=" + target + ",tmpfs-size=" + size(bytes) + ",tmpfs-mode=1777"
}
