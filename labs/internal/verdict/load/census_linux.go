package load

import (
	"os"
	"slices"
	"strings"

	"github.com/prometheus/procfs"

	"github.com/example/operator-lab/labs/internal/process"
)

// census counts threads from one reading to the next.
type census struct {
	used map[int]uint // processor time of each process at the last reading
}

// kernel is the parent of the kernel's own threads, which work for everybody.
const kernel = 2

// others counts the threads of other programs that run or wait for a processor. Threads are looked at where the process
// has run since the last reading; one that has not is no burden. What cannot be read is left out.
func (c *census) others() int {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	all := processes(fs)
	ours := lab(os.Getpid(), all)
	used, n := map[int]uint{}, 0
	for pid, p := range all {
		if ours[pid] || p.PPID == kernel {
			continue
		}
		used[pid] = p.UTime + p.STime
		threads := 0
		before, known := c.used[pid]
		switch {
		case p.NumThreads == 1 && p.State == running:
			threads = 1
		case p.NumThreads > 1 && known && used[pid] > before:
			threads = runningThreads(fs, pid)
		}
		if threads > 0 && !graded(fs, pid) {
			n += threads
		}
	}
	c.used = used
	return n
}

// graded tells whether a process is one of graded code, or one by which a runtime such as gVisor runs it.
func graded(fs procfs.FS, pid int) bool {
	p, err := fs.Proc(pid)
	if err != nil {
		return false
	}
	cgroups, err := p.Cgroups()
	return err == nil && slices.ContainsFunc(cgroups, launched)
}

func launched(c procfs.Cgroup) bool {
	return slices.ContainsFunc(strings.Split(c.Path, "/"), func(name string) bool {
		return strings.TrimSuffix(name, process.SliceSuffix) == process.LauncherCgroup
	})
}

// running is the state of a thread that has a processor or waits for one, as proc_pid_stat(5) has it.
const running = "R"

func runningThreads(fs procfs.FS, pid int) (n int) {
	threads, err := fs.AllThreads(pid)
	if err != nil {
		return 0
	}
	for _, t := range threads {
		if stat, err := t.Stat(); err == nil && stat.State == running {
			n++
		}
	}
	return n
}

func processes(fs procfs.FS) map[int]procfs.ProcStat {
	all := map[int]procfs.ProcStat{}
	list, err := fs.AllProcs()
	if err != nil {
		return all
	}
	for _, p := range list {
		if stat, err := p.Stat(); err == nil {
			all[p.PID] = stat
		}
	}
	return all
}

// lab are the processes of the lab: root and its descendants, and those of each node and control plane, which are found by
// the kubelet and the API server in them, whose parent is the first process of their container.
func lab(root int, all map[int]procfs.ProcStat) map[int]bool {
	children := map[int][]int{}
	queue := []int{root}
	for pid, p := range all {
		children[p.PPID] = append(children[p.PPID], pid)
		switch p.Comm {
		case "kubelet", "kube-apiserver":
			if p.PPID > 1 {
				queue = append(queue, p.PPID)
			}
		}
	}
	ours := map[int]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		if pid := queue[0]; !ours[pid] {
			ours[pid] = true
			queue = append(queue, children[pid]...)
		}
	}
	return ours
}
