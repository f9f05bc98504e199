package load

import (
	"os"

	"github.com/prometheus/procfs"
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
		before, known := c.used[pid]
		if p.NumThreads == 1 && p.State == running || p.NumThreads > 1 && known && used[pid] > before {
			n += threads(fs, pid)
		}
	}
	c.used = used
	return n
}

// threads are those of a process that run or wait.
func threads(fs procfs.FS, pid int) (n int) {
	all, err := fs.AllThreads(pid)
	if err != nil {
		return 0
	}
	for _, t := range all {
		if stat, err := t.Stat(); err == nil && stat.State == running && stat.Flags&exiting == 0 {
			n++
		}
	}
	return n
}

// running is the state of a thread that has a processor or waits for one, as proc_pid_stat(5) has it.
const running = "R"

// exiting is the flag of a thread that is about to end (PF_EXITING of linux/sched.h).
const exiting = 4

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
