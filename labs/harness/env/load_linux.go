package env

import (
	"runtime"

	"github.com/prometheus/procfs"
)

const (
	// busyPerProcessor is the load average for each processor above which a machine is busy: what is late there may be right.
	busyPerProcessor = 2
	// ownLoad is what the lab itself adds to it: managers, the API server and etcd. Three verdicts on lab 7 in a row made it 6.8.
	ownLoad = 8
)

// busy is this machine's load average of the last minute if the machine is busy, and 0 if it is not.
func busy() float64 {
	fs, err := procfs.NewDefaultFS()
	if err != nil {
		return 0
	}
	load, err := fs.LoadAvg()
	if err != nil || load.Load1 <= ownLoad+busyPerProcessor*float64(runtime.NumCPU()) {
		return 0
	}
	return load.Load1
}
