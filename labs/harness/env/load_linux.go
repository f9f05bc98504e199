package env

import (
	"fmt"
	"os"
	"runtime"
)

const (
	// busyPerProcessor is how many programs for each processor make a machine busy: what is late there may be right.
	busyPerProcessor = 2
	// ownLoad is what the lab itself adds: managers, the API server and etcd. Three verdicts on lab 7 in a row made a load average of 6.8.
	ownLoad = 8
)

// busy is this machine's load if the machine is busy, and 0 if it is not: the load average of the last minute, or the number of
// programs that want to run now if that is less, because what ran before a check does not matter (a fork bomb of the last hand-in).
func busy() float64 {
	data, _ := os.ReadFile("/proc/loadavg") // without it, the machine is not busy
	var one, five, fifteen, now float64
	_, _ = fmt.Sscanf(string(data), "%f %f %f %f/", &one, &five, &fifteen, &now)
	load := min(one, now)
	if load <= ownLoad+busyPerProcessor*float64(runtime.NumCPU()) {
		return 0
	}
	return load
}
