package doctor

import (
	"io/fs"
	"math/bits"
	"path"
	"strconv"
	"strings"
)

const (
	// InotifyPerCluster is how many inotify instances a kind cluster of one node takes: those of systemd, containerd
	// with its shims, kubelet and kube-proxy. With the kernel's default of 128, the fifth cluster was seen to break,
	// and not the fourth.
	InotifyPerCluster = 31
	// fewInstances are too few for clusters side by side.
	fewInstances = 512
	// fewWatches: kubelets watch every mounted volume, and editors on the same
	// machine take tens of thousands.
	fewWatches = 65536
	// fewTasks: a node runs about 330 processes and threads, building an operator
	// takes another hundred.
	fewTasks = 1000
	// manyTasks is what leaves room for a room of clusters.
	manyTasks = 4000
)

// InotifyFor is how many inotify instances the kernel has to grant to root, who runs the nodes, for n kind clusters side
// by side: theirs, and as many as one more for the machine's own programs.
func InotifyFor(n int) uint64 { return uint64(n+1) * InotifyPerCluster }

// clustersFor is how many clusters the inotify instances allow.
func clustersFor(instances uint64) uint64 { return max(instances/InotifyPerCluster, 1) - 1 }

// checkKernel looks at the limits that the kernel sets.
func (e *examination) checkKernel() {
	e.checkCapabilities()
	e.checkInotify()
	e.checkTasks()
}

// checkCapabilities compares what this host grants with all that there is. A
// container cannot have what its host lacks, and engines differ in whether they
// mind: what counts is whether a privileged container starts.
func (e *examination) checkCapabilities() {
	last, ok := e.number("proc/sys/kernel/cap_last_cap")
	text, ok2 := e.field("proc/self/status", "CapBnd")
	granted, err := strconv.ParseUint(text, 16, 64)
	if !ok || !ok2 || err != nil || (e.engine != "" && !e.local) {
		return
	}
	missing := ^granted & (1<<(last+1) - 1)
	switch {
	case missing == 0:
		e.ok("capabilities", "all %d are granted", last+1)
	case e.inside != nil:
		e.bad(Tells, "capabilities", "", "this host withholds %s; privileged containers start all the same", names(missing))
	case e.NodeImage == nil:
		e.bad(Tells, "capabilities", "", "this host withholds %s; whether privileged containers start was not tried", names(missing))
	default:
		e.bad(Warns, "capabilities", fixSetup, "this host withholds %s: the engine needs an adapted runtime", names(missing))
	}
}

// names lists capabilities. Those that hosts withhold are called by name.
func names(capabilities uint64) string {
	known := map[int]string{
		12: "CAP_NET_ADMIN", 16: "CAP_SYS_MODULE", 17: "CAP_SYS_RAWIO", 19: "CAP_SYS_PTRACE", 21: "CAP_SYS_ADMIN",
		22: "CAP_SYS_BOOT", 24: "CAP_SYS_RESOURCE", 25: "CAP_SYS_TIME", 27: "CAP_MKNOD",
		37: "CAP_AUDIT_READ", 38: "CAP_PERFMON", 39: "CAP_BPF",
	}
	var result []string
	for rest := capabilities; rest != 0; rest &= rest - 1 {
		bit := bits.TrailingZeros64(rest)
		name, ok := known[bit]
		if !ok {
			name = "capability " + strconv.Itoa(bit)
		}
		result = append(result, name)
	}
	return strings.Join(result, ", ")
}

func (e *examination) checkInotify() {
	instances, ok := e.number("proc/sys/fs/inotify/max_user_instances")
	watches, ok2 := e.number("proc/sys/fs/inotify/max_user_watches")
	if e.inside != nil && !e.local {
		instances, watches = e.inside.instances, e.inside.watches
		ok, ok2 = instances > 0, watches > 0
	} else if e.os != "linux" {
		return
	}
	fix := fixSetup
	if e.os != "linux" {
		// The kernel is that of the engine's virtual machine.
		fix = "docker run --rm --privileged --entrypoint sysctl " + e.image +
			" -w fs.inotify.max_user_instances=8192 fs.inotify.max_user_watches=524288"
	}
	switch {
	case !ok || !ok2:
		return
	case e.inside != nil && e.inside.exhausted:
		e.bad(Stops, "inotify", "sudo sysctl -w fs.inotify.max_user_instances="+strconv.FormatUint(2*instances, 10),
			"all %d instances are in use, and no node can start: make down ends ours, and the command allows more", instances)
	case instances < fewInstances:
		e.bad(Warns, "inotify", fix, "max_user_instances is %d, which is enough for %d clusters side by side (8192 is enough for all)", instances, clustersFor(instances))
	case watches < fewWatches:
		e.bad(Warns, "inotify", fix, "max_user_watches is %d, and programs will miss changes (524288 is enough)", watches)
	default:
		e.ok("inotify", "%d instances, %d watches", instances, watches)
	}
}

// checkTasks looks for the lowest of the limits on processes and threads.
func (e *examination) checkTasks() {
	if e.os != "linux" {
		return
	}
	const name = "pids"
	limit, what := e.taskLimit()
	switch {
	case what == "":
		return
	case limit < fewTasks:
		e.bad(Stops, name, raiseTasks(what), "%d more processes and threads may start (%s); a cluster needs %d", limit, what, fewTasks)
	case limit < manyTasks:
		e.bad(Warns, name, raiseTasks(what), "%d more processes and threads may start (%s); clusters side by side need more", limit, what)
	default:
		e.ok(name, "%d more processes and threads may start (%s)", limit, what)
	}
}

func raiseTasks(what string) string {
	if strings.HasPrefix(what, "kernel.") {
		return "sudo sysctl -w " + what + "=100000"
	}
	return "raise TasksMax (systemd) or --pids-limit (container) of what this shell runs in"
}

// taskLimit returns how many more tasks may start, and the setting that says so.
func (e *examination) taskLimit() (uint64, string) {
	limit, what := uint64(0), ""
	consider := func(max, used uint64, setting string) {
		left := max - min(max, used)
		if what == "" || left < limit {
			limit, what = left, setting
		}
	}
	running := e.runningTasks()
	for _, setting := range []string{"pid_max", "threads-max"} {
		if max, ok := e.number(path.Join("proc/sys/kernel", setting)); ok {
			consider(max, running, "kernel."+setting)
		}
	}
	for _, dir := range e.pidsCgroups() {
		if max, ok := e.number(path.Join(dir, "pids.max")); ok { // "max" is no number
			used, _ := e.number(path.Join(dir, "pids.current"))
			consider(max, used, "pids.max of this cgroup")
		}
	}
	return limit, what
}

// runningTasks is the second number of the fourth field of /proc/loadavg:
// "0.1 0.2 0.3 2/345 6789".
func (e *examination) runningTasks() uint64 {
	text, _ := e.text("proc/loadavg")
	fields := strings.Fields(text)
	if len(fields) < 4 {
		return 0
	}
	_, total, _ := strings.Cut(fields[3], "/")
	n, _ := strconv.ParseUint(total, 10, 64)
	return n
}

// pidsCgroups are the folders of the cgroups, this process's own and all above
// it, that may limit tasks.
func (e *examination) pidsCgroups() []string {
	text, _ := e.text("proc/self/cgroup")
	var dirs []string
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount := ""
		switch fields[1] {
		case "": // version 2
			mount = "sys/fs/cgroup"
		case "pids":
			mount = "sys/fs/cgroup/pids"
		default:
			continue
		}
		for dir := path.Clean("/" + fields[2]); ; dir = path.Dir(dir) {
			dirs = append(dirs, path.Join(mount, dir))
			if dir == "/" {
				break
			}
		}
	}
	return dirs
}

// text is the content of a file without white space around it.
func (m machine) text(name string) (string, bool) {
	data, err := fs.ReadFile(m.files, name)
	return strings.TrimSpace(string(data)), err == nil
}
