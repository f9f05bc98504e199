package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/example/operator-lab/clusters"
)

const image = "example/node:v1"

// patient is a machine with which nothing is wrong, and the hooks that spoil it.
type patient struct {
	machine
	files   fstest.MapFS
	answers map[string]string // by the beginning of a command line
	errors  map[string]error  // likewise; looked at first
	options Options
}

func healthy() *patient {
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	p := &patient{
		files: fstest.MapFS{},
		answers: map[string]string{
			"docker version": "28.0.1",
			"docker info":    "2 6.18.0 [name=seccomp,profile=default]",
			"docker run":     inside100GB(now),
			"go env":         "go1.26.8",
		},
		errors: map[string]error{},
		options: Options{
			Engine: "docker", GoVersion: "1.26.0", Pullable: "example/default:v1@sha256:0123",
			NodeImage: func(context.Context, string) (Image, error) { return Image{Ref: image}, nil },
		},
	}
	p.write("proc/sys/kernel/osrelease", "6.18.0\n")
	p.write("proc/sys/kernel/cap_last_cap", "40\n")
	p.write("proc/self/status", "Name:\tlab\nCapBnd:\t000001ffffffffff\n")
	p.write("proc/sys/fs/inotify/max_user_instances", "8192\n")
	p.write("proc/sys/fs/inotify/max_user_watches", "524288\n")
	p.write("proc/sys/kernel/pid_max", "4194304\n")
	p.write("proc/sys/kernel/threads-max", "190000\n")
	p.write("proc/loadavg", "0.00 0.01 0.05 2/345 6789\n")
	p.write("proc/self/cgroup", "0::/user.slice/shell\n")
	p.write("sys/fs/cgroup/user.slice/pids.max", "60000\n")
	p.write("sys/fs/cgroup/user.slice/pids.current", "300\n")
	p.write("sys/fs/cgroup/user.slice/shell/pids.max", "max\n")
	p.write("proc/meminfo", "MemTotal: 1 kB\nMemAvailable:   16777216 kB\n")
	p.machine = machine{
		os:    "linux",
		files: p.files,
		look:  func(string) (string, error) { return "/usr/bin/x", nil },
		run:   p.run,
		free:  func(string) (uint64, error) { return 100 * giga, nil },
		pull:  func(context.Context, string) error { return nil },
		modified: func(string) (time.Time, error) {
			return now.Add(-time.Hour), nil
		},
		now: func() time.Time { return now },
	}
	return p
}

// inside100GB is what a container prints on a machine with plenty of everything.
func inside100GB(clock time.Time) string {
	return insideWith(8192, 100*giga, clock)
}

func insideWith(instances, disk uint64, clock time.Time) string {
	return fmt.Sprintf("%d\n524288\n17179869184\n %d\n0\n%d", instances, disk, clock.Unix())
}

func (p *patient) write(name, content string) { p.files[name] = &fstest.MapFile{Data: []byte(content)} }

func (p *patient) run(_ context.Context, name string, args ...string) (string, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	for prefix, err := range p.errors {
		if strings.HasPrefix(line, prefix) {
			return "", err
		}
	}
	longest := ""
	for prefix := range p.answers {
		if strings.HasPrefix(line, prefix) && len(prefix) > len(longest) {
			longest = prefix
		}
	}
	if longest != "" {
		return p.answers[longest], nil
	}
	return "", fmt.Errorf("%s is not part of this test", line)
}

// only is a machine on which one folder is short of space, and those that do not exist
// cannot be asked about.
func only(short string, free uint64) func(string) (uint64, error) {
	return func(path string) (uint64, error) {
		switch {
		case path == short:
			return free, nil
		case strings.HasPrefix(path, short+"/"):
			return 0, fs.ErrNotExist
		default:
			return 100 * giga, nil
		}
	}
}

func (p *patient) examine(t *testing.T) map[string]Finding {
	t.Helper()
	findings := map[string]Finding{}
	for _, f := range examine(t.Context(), p.options, p.machine) {
		if _, twice := findings[f.Name]; twice {
			t.Errorf("two findings are called %q", f.Name)
		}
		if strings.Contains(f.String(), "\n") {
			t.Errorf("%q is more than one line", f)
		}
		findings[f.Name] = f
	}
	return findings
}

func TestNothingIsWrongWithAHealthyMachine(t *testing.T) {
	findings := healthy().examine(t)
	names := []string{
		"container engine", "cgroup", "node image", "privileged", "capabilities", "inotify", "pids",
		"disk", "temporary files", "build cache", "module cache", "engine's disk", "memory", "go", "git", "clock",
	}
	for _, name := range names {
		if f, found := findings[name]; !found || !f.OK || f.Fix != "" {
			t.Errorf("%s: %+v, want an OK", name, f)
		}
	}
	if len(findings) != len(names) {
		t.Errorf("%d findings, want %d: %v", len(findings), len(names), findings)
	}
}

func TestEveryIllnessIsFoundAndNamesItsCure(t *testing.T) {
	cases := map[string]struct {
		spoil    func(*patient)
		name     string
		severity Severity
		detail   string
		fix      string
	}{
		"no engine": {func(p *patient) {
			p.look = func(name string) (string, error) {
				if name == "docker" {
					return "", errors.New("not found")
				}
				return name, nil
			}
		}, "container engine", Stops, "none is installed", "make setup"},
		"client without daemon": {func(p *patient) {
			p.errors["docker version"] = errors.New("Cannot connect to the Docker daemon")
		}, "container engine", Stops, "Cannot connect", "make setup"},
		"daemon of somebody else": {func(p *patient) {
			p.errors["docker version"] = errors.New("permission denied while trying to connect")
		}, "container engine", Stops, "may not talk to it", "usermod -aG docker"},
		"rootless on cgroup v1": {func(p *patient) {
			p.answers["docker info"] = "1 6.18.0 [name=rootless]"
		}, "cgroup", Stops, "rootless", "unified_cgroup_hierarchy"},
		"no node image, no registry": {func(p *patient) {
			p.options.NodeImage = func(context.Context, string) (Image, error) { return Image{}, nil }
			p.pull = func(context.Context, string) error { return errors.New("no route to host") }
		}, "node image", Stops, "no registry", "make node-image"},
		"something else as node image": {func(p *patient) {
			p.options.NodeImage = func(context.Context, string) (Image, error) {
				return Image{}, errors.New("NODE_IMAGE=alpine is no node image")
			}
		}, "node image", Stops, "alpine", "make node-image"},
		"stale node image": {func(p *patient) {
			p.options.NodeImage = func(context.Context, string) (Image, error) { return Image{Ref: image, Stale: true}, nil }
		}, "node image", Warns, "older recipe", "make node-image"},
		"no privileged containers": {func(p *patient) {
			p.errors["docker run"] = errors.New("unable to apply caps: operation not permitted")
		}, "privileged", Stops, "unable to apply caps", "CLUSTER=embedded"},
		"few capabilities and no container": {func(p *patient) {
			p.write("proc/self/status", "CapBnd:\t000001fffeffffff\n")
			p.errors["docker run"] = errors.New("unable to apply caps")
		}, "capabilities", Warns, "CAP_SYS_RESOURCE", "make setup"},
		"few inotify instances": {func(p *patient) {
			p.write("proc/sys/fs/inotify/max_user_instances", "128\n")
		}, "inotify", Warns, "max_user_instances is 128, which is enough for 3 clusters", "make setup"},
		"few inotify watches": {func(p *patient) {
			p.write("proc/sys/fs/inotify/max_user_watches", "8192\n")
		}, "inotify", Warns, "max_user_watches is 8192", "make setup"},
		"no inotify instance left": {func(p *patient) {
			p.answers["docker run"] = strings.Replace(inside100GB(p.now()), "\n0\n", "\n1\n", 1)
		}, "inotify", Stops, "all 8192 instances are in use", "max_user_instances=16384"},
		"full temporary folder": {func(p *patient) {
			p.free = only(os.TempDir(), 100*mega)
		}, "temporary files", Stops, "100 MB free", "TMPDIR"},
		"full build cache": {func(p *patient) {
			p.answers["go env GOCACHE"] = "/cache/not/made/yet"
			p.free = only("/cache", 100*mega)
		}, "build cache", Stops, "100 MB free", "go clean -cache"},
		"few tasks in this cgroup": {func(p *patient) {
			p.write("sys/fs/cgroup/user.slice/shell/pids.max", "512\n")
			p.write("sys/fs/cgroup/user.slice/shell/pids.current", "12\n")
		}, "pids", Stops, "500 more", "TasksMax"},
		"few tasks in the cgroup above": {func(p *patient) {
			p.write("sys/fs/cgroup/user.slice/pids.max", "2300\n")
		}, "pids", Warns, "2000 more", "TasksMax"},
		"few tasks on cgroup v1": {func(p *patient) {
			p.write("proc/self/cgroup", "7:pids:/box\n")
			p.write("sys/fs/cgroup/pids/box/pids.max", "100\n")
		}, "pids", Stops, "100 more", "TasksMax"},
		"few tasks in the kernel": {func(p *patient) {
			p.write("proc/sys/kernel/threads-max", "1000\n")
		}, "pids", Stops, "655 more", "sysctl -w kernel.threads-max"},
		"full disk": {func(p *patient) {
			p.free = func(string) (uint64, error) { return 100 * mega, nil }
		}, "disk", Stops, "100 MB free", "make down"},
		"full disk of the engine": {func(p *patient) {
			p.answers["docker run"] = insideWith(8192, giga, p.now())
		}, "engine's disk", Stops, "1.0 GB free", "docker image ls"},
		"filling disk of the engine": {func(p *patient) {
			p.answers["docker run"] = insideWith(8192, 3*giga, p.now())
		}, "engine's disk", Warns, "3.0 GB free", "docker image ls"},
		"little memory": {func(p *patient) {
			p.answers["docker run"] = strings.Replace(inside100GB(p.now()), "17179869184", "536870912", 1)
		}, "memory", Stops, "512 MB available", "make down"},
		"no Go": {func(p *patient) {
			p.errors["go env"] = errors.New("executable file not found")
		}, "go", Stops, "not installed", "go.dev/dl"},
		"old Go": {func(p *patient) {
			p.answers["go env -C / GOVERSION"] = "go1.25.9" // in the checkout, it fetches 1.26.8
		}, "go", Stops, "go1.25.9 is older than 1.26.0", "go.dev/dl"},
		"clock before the checkout": {func(p *patient) {
			p.modified = func(string) (time.Time, error) { return p.now().AddDate(1, 0, 0), nil }
		}, "clock", Stops, "2027-11-21", "timedatectl"},
		"engine's clock stood still": {func(p *patient) {
			p.answers["docker run"] = inside100GB(p.now().Add(-2 * time.Hour))
		}, "clock", Stops, "2h0m0s", "restart"},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			p := healthy()
			test.spoil(p)
			f, found := p.examine(t)[test.name]
			if !found || f.OK || f.Severity != test.severity {
				t.Fatalf("%s: %+v, want one that %s", test.name, f, test.severity)
			}
			if !strings.Contains(f.Detail, test.detail) || !strings.Contains(f.Fix, test.fix) {
				t.Errorf("%q does not say %q and %q", f, test.detail, test.fix)
			}
		})
	}
}

func TestWhatIsOnlyGoodToKnowIsNotWrong(t *testing.T) {
	p := healthy()
	p.answers["docker info"] = "1 6.18.0 [name=seccomp,profile=default]"
	p.write("proc/self/status", "CapBnd:\t000001fffeffffff\n")
	findings := p.examine(t)
	for name, detail := range map[string]string{"cgroup": "version 1", "capabilities": "CAP_SYS_RESOURCE"} {
		if f := findings[name]; !f.OK || !strings.Contains(f.Detail, detail) {
			t.Errorf("%s: %+v, want an OK that says %q", name, f, detail)
		}
	}
}

func TestWhatWasNotTriedIsNotHeldAgainstTheMachine(t *testing.T) {
	p := healthy()
	p.options.NodeImage = nil
	p.write("proc/self/status", "CapBnd:\t000001fffeffffff\n")
	if f := p.examine(t)["capabilities"]; !f.OK || !strings.Contains(f.Detail, "not tried") {
		t.Errorf("capabilities: %+v, want an OK that says what was not tried", f)
	}
}

func TestTheWorstFindingStopsLabs(t *testing.T) {
	findings := []Finding{
		{Name: "cgroup", OK: true, Severity: Tells},
		{Name: "inotify", Severity: Warns},
		{Name: "disk", Severity: Stops},
	}
	for n, want := range map[int]string{1: "", 2: "inotify", 3: "disk"} {
		if f, ok := Worst(findings[:n]); f.Name != want || ok != (want != "") {
			t.Errorf("Worst() of %d findings = %+v, %v, want %q", n, f, ok, want)
		}
	}
}

func TestANodeImageThatCanBePulledIsEnough(t *testing.T) {
	p := healthy()
	p.options.NodeImage = func(context.Context, string) (Image, error) { return Image{}, nil }
	if f := p.examine(t)["node image"]; !f.OK || !strings.Contains(f.Detail, "example/default:v1") {
		t.Errorf("node image: %+v, want an OK that names the image", f)
	}
}

// On macOS the kernel that matters is that of the engine's virtual machine.
func TestTheEnginesKernelCountsWhereItIsAnother(t *testing.T) {
	p := healthy()
	p.os = "darwin"
	for name := range p.files {
		delete(p.files, name)
	}
	p.answers["docker run"] = insideWith(128, 100*giga, p.now())
	findings := p.examine(t)
	if f := findings["inotify"]; f.OK || !strings.Contains(f.Fix, "docker run") || !strings.Contains(f.Fix, image) {
		t.Errorf("inotify: %+v, want a command that reaches the virtual machine", f)
	}
	if f, found := findings["memory"]; !found || !f.OK {
		t.Errorf("memory: %+v, want that of the virtual machine", f)
	}
	for _, name := range []string{"pids", "capabilities"} {
		if f, found := findings[name]; found {
			t.Errorf("%s: %+v, want nothing about a kernel that runs no node", name, f)
		}
	}
}

func TestWithoutAnEngineTheRestIsStillLookedAt(t *testing.T) {
	p := healthy()
	p.errors["docker version"] = errors.New("no daemon")
	findings := p.examine(t)
	for _, name := range []string{"inotify", "disk", "memory", "go", "clock"} {
		if f, found := findings[name]; !found || !f.OK {
			t.Errorf("%s: %+v, want an OK", name, f)
		}
	}
	for _, name := range []string{"cgroup", "node image", "privileged", "engine's disk"} {
		if f, found := findings[name]; found {
			t.Errorf("%s: %+v without an engine", name, f)
		}
	}
}

// What a compilation wrote is gone when it has failed.
func TestAWatchRemembersTheLeast(t *testing.T) {
	p := healthy()
	free := uint64(100 * giga)
	p.free = func(string) (uint64, error) { return free, nil }
	p.write("proc/vmstat", "pgfault 12\noom_kill 3\n")
	w := begin(t.Context(), p.options, p.machine)
	w.end()
	<-w.ended
	free = 40 * mega
	w.sample()
	free = 100 * giga
	p.write("proc/vmstat", "pgfault 12\noom_kill 5\n")
	findings := map[string]Finding{}
	for _, f := range w.End() {
		findings[f.Name] = f
	}
	for name, detail := range map[string]string{"temporary files": "40 MB free", "build cache": "40 MB free", "memory": "killed 2 programs"} {
		if f := findings[name]; f.OK || f.Severity != Stops || f.Fix == "" || !strings.Contains(f.Detail, detail) {
			t.Errorf("%s: %+v, want one that stops and says %q", name, f, detail)
		}
	}
}

func TestAWatchOverAHealthyMachineFindsNothing(t *testing.T) {
	p := healthy()
	findings := begin(t.Context(), p.options, p.machine).End()
	if f, bad := Worst(findings); bad || len(findings) == 0 {
		t.Errorf("findings = %+v, want several and nothing wrong: %+v", findings, f)
	}
}

func TestProblemNamesAllThatStopsALab(t *testing.T) {
	findings := []Finding{
		{Name: "disk", OK: true},
		{Name: "inotify", Severity: Warns, Fix: "make setup"},
	}
	if err := Problem(findings); err != nil {
		t.Errorf("Problem() = %v for a warning, want nil", err)
	}
	findings = append(findings,
		Finding{Name: "go", Severity: Stops, Fix: "install it"},
		Finding{Name: "clock", Severity: Stops, Fix: "set it"})
	problem, ok := errors.AsType[*clusters.Problem](Problem(findings))
	if !ok || !strings.Contains(problem.What, "go, clock") || problem.Fix != "install it" {
		t.Errorf("Problem() = %+v, want go and clock and the first command", problem)
	}
}

// The doctor reads real files in one place only; a machine that it cannot read
// would make every other test meaningless.
func TestThisMachineCanBeRead(t *testing.T) {
	m := thisMachine()
	if m.os == "linux" {
		if n, ok := m.number("proc/sys/kernel/pid_max"); !ok || n == 0 {
			t.Errorf("pid_max = %d, %v", n, ok)
		}
	}
	if free, err := m.free(t.TempDir()); err != nil || free == 0 {
		t.Errorf("free = %d, %v", free, err)
	}
	if _, err := m.modified("doctor.go"); err != nil {
		t.Error(err)
	}
	if _, err := fs.Stat(m.files, "."); err != nil {
		t.Error(err)
	}
}

func TestWithoutAnEngineLabsRunOnTheEmbeddedControlPlane(t *testing.T) {
	for name, test := range map[string]struct {
		noEngine bool
		missing  []string
		err      error
		problem  bool
		want     string
	}{
		"it is built":                  {false, nil, nil, false, "embedded, and built"},
		"it is not built yet":          {false, []string{"etcd", "kwok"}, nil, false, "etcd, kwok"},
		"it cannot be built":           {false, nil, errors.New("go: no such tool\nmore"), true, "go: no such tool"},
		"an engine is not even wanted": {true, nil, nil, false, "embedded, and built"},
	} {
		t.Run(name, func(t *testing.T) {
			p := healthy()
			p.errors["docker version"] = errors.New("no daemon")
			p.options.NoEngine = test.noEngine
			p.options.Embedded = func(context.Context) ([]string, error) { return test.missing, test.err }
			findings := examine(t.Context(), p.options, p.machine)
			text, engine := "", false
			for _, f := range findings {
				text += f.String() + "\n"
				engine = engine || f.Name == "container engine"
			}
			if !strings.Contains(text, test.want) || engine == test.noEngine {
				t.Errorf("findings:\n%swant %q in them, and a word about engines: %v", text, test.want, !test.noEngine)
			}
			if err := Problem(findings); (err != nil) != test.problem {
				t.Errorf("Problem() = %v, want one: %v", err, test.problem)
			}
		})
	}
}

func TestWithAnEngineTheEmbeddedControlPlaneDoesNotMatter(t *testing.T) {
	p := healthy()
	p.options.Embedded = func(context.Context) ([]string, error) { return nil, errors.New("it cannot be built") }
	if err := Problem(examine(t.Context(), p.options, p.machine)); err != nil {
		t.Errorf("Problem() = %v, want nil: labs run on kind", err)
	}
}
