package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// bootID is constant: the start of a process here is a date, which no later boot
// repeats. The time of the boot would not do, because setting the clock moves it.
func bootID() (string, error) { return "darwin", nil }

func startOf(pid int) (string, error) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if errors.Is(err, unix.ESRCH) || errors.Is(err, unix.EIO) {
		// The kernel answers with an empty list, which the library reports as EIO.
		return "", errGone
	}
	if err != nil {
		return "", err
	}
	started := info.Proc.P_starttime
	return fmt.Sprintf("%d.%06d", started.Sec, started.Usec), nil
}
