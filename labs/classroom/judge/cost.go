package judge

import (
	"os"
	"strconv"
	"strings"

	"github.com/example/operator-lab/labs/hosted"
)

// cost reads what the control group of this container has counted; nil where it is not to be seen. Version 1 counts in
// nanoseconds.
func cost() *hosted.Cost {
	if cpu, ok := counter("/sys/fs/cgroup/cpu.stat", "usage_usec "); ok {
		peak, _ := counter("/sys/fs/cgroup/memory.peak", "")
		return &hosted.Cost{CPUSeconds: float64(cpu) / 1e6, MemoryPeak: peak}
	}
	if cpu, ok := counter("/sys/fs/cgroup/cpuacct/cpuacct.usage", ""); ok {
		peak, _ := counter("/sys/fs/cgroup/memory/memory.max_usage_in_bytes", "")
		return &hosted.Cost{CPUSeconds: float64(cpu) / 1e9, MemoryPeak: peak}
	}
	return nil
}

// counter is the number behind a name in a file of a control group.
func counter(file, name string) (n int64, ok bool) {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if text, found := strings.CutPrefix(line, name); found {
			n, err = strconv.ParseInt(strings.TrimSpace(text), 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}
