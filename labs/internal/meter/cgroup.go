package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Root is where Linux shows its control groups and processes. The zero value is wrong; [Host] is this machine.
type Root struct {
	// Cgroup is /sys/fs/cgroup, Proc is /proc.
	Cgroup, Proc string
}

// Host is this machine.
var Host = Root{Cgroup: "/sys/fs/cgroup", Proc: "/proc"}

// Group is the control group of one container, and with it that of everything that runs inside.
type Group struct {
	// cpu and memory are folders.
	cpu, memory string
	unified     bool // version 2
}

// Group finds the control group of a container by its full id and the process id of its first process, which may have
// moved into a group below the container's own: the systemd of a node does. An error that wraps [fs.ErrNotExist]
// says that the container runs on another machine, or in a virtual one.
func (r Root) Group(id string, pid int) (Group, error) {
	data, err := os.ReadFile(filepath.Join(r.Proc, strconv.Itoa(pid), "cgroup"))
	if err != nil {
		return Group{}, fmt.Errorf("find control group of container %.12s: %w", id, err)
	}
	places := map[string]string{} // by controller; version 2 has "" alone
	for line := range strings.Lines(string(data)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, place, _ := strings.Cut(rest, ":")
		if place, ok := above(place, id); ok {
			for controller := range strings.SplitSeq(controllers, ",") {
				places[controller] = place
			}
		}
	}
	g := Group{}
	if memory, ok := places["memory"]; ok {
		g.cpu, g.memory = filepath.Join(r.Cgroup, "cpuacct", places["cpuacct"]), filepath.Join(r.Cgroup, "memory", memory)
	} else if place, ok := places[""]; ok {
		g.cpu, g.memory, g.unified = filepath.Join(r.Cgroup, place), filepath.Join(r.Cgroup, place), true
	} else {
		return g, fmt.Errorf("find control group of container %.12s: %w: process %d is in none of its own", id, fs.ErrNotExist, pid)
	}
	_, err = os.Stat(g.cpu)
	_, memoryErr := os.Stat(g.memory)
	if err = errors.Join(err, memoryErr); err != nil {
		return Group{}, fmt.Errorf("find control group of container %.12s: %w", id, err)
	}
	return g, nil
}

// above cuts a path after the part that is named after the container: docker/ID, docker-ID.scope, libpod-ID.scope.
func above(place, id string) (string, bool) {
	for dir := place; dir != "/" && dir != "."; dir = path.Dir(dir) {
		if strings.Contains(path.Base(dir), id) {
			return dir, true
		}
	}
	return "", false
}

// CPU is the processor time that the container has used since it was started.
func (g Group) CPU() (time.Duration, error) {
	if g.unified {
		microseconds, err := entry(filepath.Join(g.cpu, "cpu.stat"), "usage_usec")
		return time.Duration(microseconds) * time.Microsecond, err
	}
	nanoseconds, err := number(filepath.Join(g.cpu, "cpuacct.usage"))
	return time.Duration(nanoseconds), err
}

// Memory is the working set in bytes: what the container uses without the files that the kernel can drop at once. It
// is what the kubelet goes by, too.
func (g Group) Memory() (uint64, error) {
	usage, inactive := "memory.usage_in_bytes", "total_inactive_file"
	if g.unified {
		usage, inactive = "memory.current", "inactive_file"
	}
	used, err := number(filepath.Join(g.memory, usage))
	if err != nil {
		return 0, err
	}
	droppable, err := entry(filepath.Join(g.memory, "memory.stat"), inactive)
	if err != nil {
		return 0, err
	}
	return used - min(used, droppable), nil
}

// number reads a file with one number.
func number(file string) (uint64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(data)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read %s: %w: %q", file, errUnreadable, data)
	}
	return n, nil
}

// entry reads a number out of a file with lines of names and numbers.
func entry(file, name string) (uint64, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, fmt.Errorf("read counter: %w", err)
	}
	for line := range strings.Lines(string(data)) {
		fields := strings.Fields(line)
		if len(fields) != 2 || fields[0] != name {
			continue
		}
		n, err := strconv.ParseUint(fields[1], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read %s: %w: %q", file, errUnreadable, line)
		}
		return n, nil
	}
	return 0, fmt.Errorf("read %s: it has no %s", file, name)
}
