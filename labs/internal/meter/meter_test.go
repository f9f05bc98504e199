package meter

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// id is that of the container in all fixtures.
const id = "6292b569cbaf19fe9adb718de793a94f4d5b02e6f6eeec3f0fcd618a5b8b9808"

// v1 is a node under cgroup v1 as a machine of 2026 showed it: its systemd has moved into init.scope of some
// hierarchies, and the kernel shows an unused unified one besides.
var v1 = map[string]string{
	"proc/42/cgroup": `9:name=systemd:/docker/` + id + `/init.scope
4:memory:/docker/` + id + `/init.scope
2:cpu,cpuacct:/docker/` + id + `
0::/docker/` + id + `/init.scope
`,
	"cgroup/cpuacct/docker/" + id + "/cpuacct.usage":               "9040079805\n",
	"cgroup/memory/docker/" + id + "/memory.usage_in_bytes":        "437149696\n",
	"cgroup/memory/docker/" + id + "/init.scope/memory.usage":      "1\n",
	"cgroup/memory/docker/" + id + "/memory.stat":                  "cache 2019328\ninactive_file 1691648\ntotal_cache 13631488\ntotal_inactive_file 3801088\n",
	"cgroup/unified/docker/" + id + "/init.scope/memory.stat":      "",
	"cgroup/cpuacct/docker/" + id + "/kubelet/pods/cpuacct.usage":  "1\n",
	"cgroup/memory/docker/" + id + "/kubelet/memory.max_usage_etc": "1\n",
}

// v2 is one under cgroup v2, with systemd as the engine's driver.
var v2 = map[string]string{
	"proc/42/cgroup": "0::/system.slice/docker-" + id + ".scope/init.scope\n",
	"cgroup/system.slice/docker-" + id + ".scope/cpu.stat":       "usage_usec 9040079\nuser_usec 7000000\nsystem_usec 2040079\n",
	"cgroup/system.slice/docker-" + id + ".scope/memory.current": "437149696\n",
	"cgroup/system.slice/docker-" + id + ".scope/memory.stat":    "anon 1\ninactive_file 3801088\nactive_file 5\n",
}

// machine writes files into a folder that looks like a machine.
func machine(t *testing.T, files map[string]string) Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return Root{Cgroup: filepath.Join(dir, "cgroup"), Proc: filepath.Join(dir, "proc")}
}

func TestContainersGroupIsReadOnBothVersions(t *testing.T) {
	for name, tc := range map[string]struct {
		files map[string]string
		cpu   time.Duration
	}{
		"v1": {v1, 9040079805 * time.Nanosecond},
		"v2": {v2, 9040079 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			group, err := machine(t, tc.files).Group(id, 42)
			if err != nil {
				t.Fatal(err)
			}
			if cpu, err := group.CPU(); err != nil || cpu != tc.cpu {
				t.Errorf("CPU() = %v, %v, want %v", cpu, err, tc.cpu)
			}
			// Of the whole container, without the files that are not in use.
			if memory, err := group.Memory(); err != nil || memory != 437149696-3801088 {
				t.Errorf("Memory() = %d, %v, want %d", memory, err, 437149696-3801088)
			}
		})
	}
}

func TestContainerOfAnotherMachineIsToldApart(t *testing.T) {
	namespaced := maps.Clone(v2)
	namespaced["proc/42/cgroup"] = "0::/../../init.scope\n" // we are in a namespace of control groups ourselves
	noFolder := map[string]string{"proc/42/cgroup": v2["proc/42/cgroup"]}
	stranger := maps.Clone(v2)
	stranger["proc/42/cgroup"] = "0::/system.slice/sshd.service\n" // the pid means something else here
	for name, files := range map[string]map[string]string{
		"no such process": {}, "in a namespace": namespaced, "no such folder": noFolder, "another program": stranger,
	} {
		if group, err := machine(t, files).Group(id, 42); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: Group() = %+v, %v, want fs.ErrNotExist", name, group, err)
		}
	}
}

func TestCounterThatIsNoneIsAnError(t *testing.T) {
	files := maps.Clone(v2)
	files["cgroup/system.slice/docker-"+id+".scope/memory.current"] = "max\n"
	files["cgroup/system.slice/docker-"+id+".scope/cpu.stat"] = "user_usec 7000000\n"
	group, err := machine(t, files).Group(id, 42)
	if err != nil {
		t.Fatal(err)
	}
	if cpu, err := group.CPU(); err == nil {
		t.Errorf("CPU() = %v, want an error", cpu)
	}
	if memory, err := group.Memory(); err == nil {
		t.Errorf("Memory() = %v, want an error", memory)
	}
}

func TestBusyTimeIsWithoutWaiting(t *testing.T) {
	//      user nice system idle    iowait irq softirq steal guest guest_nice
	const stat = "cpu  1000 200 300 99999 8888 40 50 10 500 7\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n"
	got, err := busy(stat)
	if want := 16 * time.Second; err != nil || got != want {
		t.Errorf("busy() = %v, %v, want %v", got, err, want)
	}
	if got, err := busy("intr 5\n"); err == nil {
		t.Errorf("busy() = %v, want an error", got)
	}
}

func TestTreeCountsTheLivingAndTheDead(t *testing.T) {
	var all []process
	for _, stat := range []string{
		"1 (init) S 0 1 1 0 -1 0 0 0 0 0 9000 9000 9000 9000 20 0 1 0 0",
		"10 (lab) S 1 10 10 0 -1 0 0 0 0 0 100 50 200 50 20 0 1 0 0",
		"11 (go build) :) S 10 10 10 0 -1 0 0 0 0 0 300 0 10 0 20 0 1 0 0",
		"12 (compile) S 11 10 10 0 -1 0 0 0 0 0 0 100 0 0 20 0 1 0 0",
		"13 (other) S 1 10 10 0 -1 0 0 0 0 0 7000 0 0 0 20 0 1 0 0",
	} {
		p, err := parseProcess(stat)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	if got, want := tree(10, all), 8100*time.Millisecond; got != want {
		t.Errorf("tree() = %v, want %v", got, want)
	}
	if p, err := parseProcess("11 (sh) S 1"); err == nil {
		t.Errorf("parseProcess() = %+v, want an error", p)
	}
}
