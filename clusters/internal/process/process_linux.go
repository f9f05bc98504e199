package process

import (
	"errors"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"

	"github.com/prometheus/procfs"
)

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// startOf is the start in clock ticks after the boot. A zombie has ended: only its parent has not looked yet.
func startOf(pid int) (string, error) {
	var stat procfs.ProcStat
	p, err := procfs.NewProc(pid)
	if err == nil {
		stat, err = p.Stat()
	}
	switch {
	case errors.Is(err, syscall.ESRCH):
		return "", errGone
	case errors.Is(err, fs.ErrNotExist):
		// With hidepid, other people's processes are not to be seen; a signal
		// tells whether there is one.
		if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
			return "", errGone
		}
		return "", err
	case err != nil:
		return "", err
	case stat.State == "Z" || stat.State == "X":
		return "", errGone
	}
	return strconv.FormatUint(stat.Starttime, 10), nil
}
