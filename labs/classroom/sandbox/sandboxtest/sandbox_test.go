//go:build linux

package sandboxtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/procfs"

	"github.com/example/operator-lab/labs/classroom/sandbox"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// root is the checkout.
const root = "../../../.."

// soon is how long anything here may take: containers, and the limit that ends a program.
const soon = 60 * time.Second

// lookPeriod is how often it is looked whether containers are left: a look takes the engine's time to remove them.
const lookPeriod = 200 * time.Millisecond

// fixture has containers of this test's own, and programs to run in them.
type fixture struct {
	process.Runner
	*sandbox.Container
	hostile string
	home    string
}

func newFixture(t *testing.T) fixture {
	t.Helper()
	scratch, err := os.MkdirTemp("", "sandboxtest-") //nolint:usetesting // t.TempDir is too long for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(scratch) })
	settings := strings.Fields(run(t, root, "go", "env", "GOROOT", "GOMODCACHE", "GOCACHE"))
	container := &sandbox.Container{
		Engine: "docker", Runtime: os.Getenv("SANDBOX_RUNTIME"), Shim: filepath.Join(scratch, "sandbox-shim"), Owner: "sandboxtest-" + rand.Text(),
		Toolchain: sandbox.Toolchain{GoRoot: settings[0], ModCache: settings[1], BuildCache: settings[2]},
	}
	launcher, err := container.Launcher(filepath.Join(scratch, "settings.json"))
	if err != nil {
		t.Fatal(err)
	}
	launcher.Scratch = scratch
	b := fixture{process.Runner{Launcher: launcher}, container, filepath.Join(scratch, "hostile"), filepath.Join(scratch, "home")}
	run(t, root, "go", "build", "-o", scratch+"/", "./labs/classroom/cmd/sandbox-shim", "./labs/classroom/sandbox/sandboxtest/hostile")
	if err := errors.Join(os.Mkdir(b.home, 0o700), b.Prepare(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), soon)
		defer cancel()
		if err := b.Sweep(ctx); err != nil {
			t.Error(err)
		}
	})
	return b
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, &stderr)
	}
	return string(out)
}

// try runs the hostile program, and returns what it printed and its exit code.
func (b fixture) try(t *testing.T, job process.Job, args ...string) (string, int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	job.Args, job.Dir, job.Writes = append([]string{b.hostile}, args...), b.home, b.home
	cmd, err := b.Program(ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	_ = cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%v goes on and on", args)
	}
	code := cmd.ProcessState.ExitCode()
	if code == process.NotStarted {
		t.Fatalf("it was not started: %s", &out)
	}
	return out.String(), code
}

// fails wants a program that came to its end without having done anything.
func fails(t *testing.T, out string, code int) {
	t.Helper()
	if code != 0 || !strings.Contains(out, "done\n") {
		t.Errorf("it did not come to its end (%d)", code)
	}
	if strings.Contains(out, "did ") || t.Failed() {
		t.Errorf("it printed:\n%s", out)
	}
}

func TestAHostileProgram(t *testing.T) {
	b := newFixture(t)

	t.Run("reads nothing of this machine", func(t *testing.T) {
		word := "canary-" + rand.Text()
		for _, dir := range []string{t.TempDir(), b.Runner.Launcher.Scratch} {
			if err := os.WriteFile(filepath.Join(dir, "secret"), []byte(word), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, code := b.try(t, process.Job{}, "read", word)
		fails(t, out, code)
		var saw []string
		for line := range strings.Lines(out) {
			if path, ok := strings.CutPrefix(strings.TrimSpace(line), "saw "); ok && path != "/.dockerenv" {
				saw = append(saw, path)
			}
		}
		slices.Sort(saw)
		want := []string{"/etc/group", "/etc/hostname", "/etc/hosts", "/etc/passwd", "/etc/resolv.conf", "/lab/sandbox-shim", "/lab/socket", b.hostile}
		if diff := cmp.Diff(want, saw); diff != "" {
			t.Errorf("it sees other files: %s", diff)
		}
	})

	t.Run("reaches the addresses of its list, and nothing else", func(t *testing.T) {
		own, ownCalls := listen(t, "127.0.0.1:0", "own")
		second, secondCalls := listen(t, "127.0.0.1:0", "two")
		other, otherCalls := listen(t, "127.0.0.1:0", "other")
		everywhere, everywhereCalls := listen(t, "0.0.0.0:0", "host")
		_, port, _ := net.SplitHostPort(everywhere)
		addresses := []string{own, second, other, "169.254.169.254:80", "1.1.1.1:53", "[::1]:" + port, "@" + abstract(t), "/var/run/docker.sock", "host.docker.internal:" + port}
		for _, address := range ours(t) {
			addresses = append(addresses, net.JoinHostPort(address, port))
		}
		out, _ := b.try(t, process.Job{Reaches: []string{own, second}}, append([]string{"connect"}, addresses...)...)
		if n := strings.Count(out, "did connect"); n != 2 || !strings.Contains(out, "did connect to "+own+": own\n") || !strings.Contains(out, "did connect to "+second+": two\n") {
			t.Errorf("it reached:\n%s", out)
		}
		if !strings.Contains(out, `call "r\x00": "own"`) || !strings.Contains(out, `call "r\x01": "two"`) || strings.Count(out, `: ""`) != 6 {
			t.Errorf("the way out leads elsewhere:\n%s", out)
		}
		if ownCalls() != 2 || secondCalls() != 2 || otherCalls()+everywhereCalls() != 0 {
			t.Errorf("%d and %d calls to its list, %d and %d to others", ownCalls(), secondCalls(), otherCalls(), everywhereCalls())
		}
	})

	t.Run("gets no rights", func(t *testing.T) {
		out, code := b.try(t, process.Job{}, "rise")
		fails(t, out, code)
		for _, wanted := range []string{"Uid 65534\t65534\t65534\t65534", "Gid 65534", "CapEff 0000000000000000", "CapPrm 0000000000000000", "CapBnd 0000000000000000", "NoNewPrivs 1"} {
			if !strings.Contains(out, wanted) {
				t.Errorf("no %q in\n%s", wanted, out)
			}
		}
	})

	t.Run("takes no memory of the machine with single bytes", func(t *testing.T) {
		out, code := b.try(t, process.Job{}, "crumbs")
		fails(t, out, code)
	})

	t.Run("fills no disk", func(t *testing.T) {
		out, code := b.try(t, process.Job{}, "write")
		fails(t, out, code)
		total := 0
		for line := range strings.Lines(out) {
			var dir string
			var n int
			if _, err := fmt.Sscanf(line, "filled %s %d", &dir, &n); err == nil {
				if dir != "/tmp" && dir != b.home {
					t.Errorf("it wrote to %s", dir)
				}
				total += n
			}
		}
		if total == 0 || total > 128 {
			t.Errorf("it wrote %d MB:\n%s", total, out)
		}
		if entries, err := os.ReadDir(b.home); err != nil || len(entries) > 0 {
			t.Errorf("its home on this machine has %v, %v", entries, err)
		}
	})

	t.Run("leaves no more than is wanted", func(t *testing.T) {
		out, code := b.try(t, process.Job{Returns: 2 << 20}, "leave", "1")
		info, err := os.Lstat(filepath.Join(b.home, "left"))
		_, link := os.Lstat(filepath.Join(b.home, "shadow"))
		if code != 0 || err != nil || info.Size() != 1<<20 || !errors.Is(link, os.ErrNotExist) {
			t.Errorf("%d, %v, %v, %v: %s", code, info, err, link, out)
		}
		if out, code := b.try(t, process.Job{Returns: 2 << 20}, "leave", "3"); code != 1 || !strings.Contains(out, "left more than 2 MiB") {
			t.Errorf("%d: %s", code, out)
		}
	})

	for what, codes := range map[string][]int{
		"fork":   {supervisor.TooManyProcesses, supervisor.TooMuchMemory},
		"signal": {supervisor.TooManyProcesses, supervisor.TooMuchMemory},
		"eat":    {supervisor.TooMuchMemory},
		"watch":  {supervisor.TooMuchMemory},
		"queue":  {supervisor.TooMuchMemory},
		"print":  {process.TooMuchOutput},
	} {
		t.Run("takes no more than its share: "+what, func(t *testing.T) {
			_, code := b.try(t, process.Job{}, what)
			if !slices.Contains(codes, code) || process.Exceeded(code) == "" {
				t.Errorf("exit code %d", code)
			}
		})
	}

	t.Run("is known by its control group while it works", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		groups := make(chan []string, 1)
		go func() {
			conn, err := l.Accept()
			if err != nil {
				close(groups)
				return
			}
			defer conn.Close() // the program waits until then
			id := run(t, root, "docker", "ps", "--quiet", "--no-trunc", "--filter", "label=operator-lab.sandbox="+b.Owner)
			groups <- cgroups(strings.TrimSpace(id))
		}()
		b.try(t, process.Job{Reaches: []string{l.Addr().String()}}, "connect", l.Addr().String())
		paths := <-groups
		if len(paths) == 0 {
			t.Error("no process of this machine is in the control group of the container")
		}
		for _, path := range paths {
			if !slices.Contains(strings.Split(path, "/"), process.LauncherCgroup+process.SliceSuffix) {
				t.Errorf("the control group %s is not below %s", path, process.LauncherCgroup)
			}
		}
	})

	t.Run("leaves no process", func(t *testing.T) {
		deadline := time.Now().Add(soon)
		tick := time.NewTicker(lookPeriod)
		defer tick.Stop()
		for ; time.Now().Before(deadline); <-tick.C {
			if out := run(t, root, "docker", "ps", "--quiet", "--filter", "label=operator-lab.sandbox="+b.Owner); out == "" {
				return
			}
		}
		t.Error("containers are left")
	})
}

// cgroups are the control groups of this machine's processes that have the id of a container in their paths.
func cgroups(id string) (paths []string) {
	processes, _ := procfs.AllProcs()
	for _, p := range processes {
		all, _ := p.Cgroups() // a process may have ended
		for _, group := range all {
			if id != "" && strings.Contains(group.Path, id) {
				paths = append(paths, group.Path)
			}
		}
	}
	return paths
}

// listen counts who calls at an address, and says a word to everybody.
func listen(t *testing.T, at, word string) (string, func() int) {
	t.Helper()
	l, err := net.Listen("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	calls := make(chan struct{}, 100)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			calls <- struct{}{}
			_, _ = io.WriteString(conn, word)
			conn.Close()
		}
	}()
	return l.Addr().String(), func() int { return len(calls) }
}

// abstract is a socket that is no file, such as programs on this machine have.
func abstract(t *testing.T) string {
	t.Helper()
	name := "sandboxtest-" + rand.Text()
	l, err := net.Listen("unix", "@"+name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return name
}

// ours are the addresses of this machine, that of the engine's bridge among them.
func ours(t *testing.T) []string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, a := range all {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil {
			found = append(found, ip.IP.String())
		}
	}
	return found
}

func TestABuildRunsAndDownloadsNothing(t *testing.T) {
	b := newFixture(t)
	workspace := filepath.Join(b.Runner.Launcher.Scratch, "workspace")
	touch := "touch /tmp/ran " + filepath.Join(b.Runner.Launcher.Scratch, "ran")
	files := map[string]string{
		"go.mod":       "module example.test/evil\n\ngo 1.26\n",
		"main.go":      "package main\n\n//go:generate " + touch + "\n\nfunc main() { println(\"built\") }\n",
		"cgo.go":       "package main\n\n// #cgo CFLAGS: -fplugin=evil.so\nimport \"C\"\n\nfunc init() { panic(1) }\n",
		"Makefile":     "all:\n\t" + touch + "\n",
		"asm/asm.go":   "package asm\n\nfunc f()\n\nfunc main() { f() }\n",
		"asm/asm.s":    "#include \"/proc/1/environ\"\n#include \"/etc/shadow\"\n",
		"need/need.go": "package main\n\nimport _ \"golang.org/x/evil\"\n\nfunc main() {}\n",
		"go.work":      "go 1.26\n\nuse /\n",
	}
	for name, text := range files {
		file := filepath.Join(workspace, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	out := filepath.Join(b.Runner.Launcher.Scratch, "out")
	if err := os.Mkdir(out, 0o755); err != nil {
		t.Fatal(err)
	}
	build := func(pkg string) (string, error) {
		cmd, err := b.Tool(t.Context(), process.Job{
			Args: []string{"go", "build", "-o", filepath.Join(out, "program"), pkg}, Dir: workspace, Reads: []string{workspace}, Writes: out, Returns: 64 << 20,
		})
		if err != nil {
			t.Fatal(err)
		}
		said, err := cmd.CombinedOutput()
		return string(said), err
	}
	if said, err := build("."); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if said := run(t, out, "./program"); said != "" {
		t.Errorf("the program says %q", said)
	}
	if said, err := build("./asm"); err == nil || strings.Contains(said, "root:") {
		t.Errorf("%v: %s", err, said)
	}
	if said, err := build("./need"); err == nil || !strings.Contains(said, "golang.org/x/evil") {
		t.Errorf("%v: %s", err, said)
	}
	if _, err := os.Stat(filepath.Join(b.Runner.Launcher.Scratch, "ran")); err == nil {
		t.Error("something of the learner's was run")
	}
}
