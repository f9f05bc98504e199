package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
)

func bootID() (string, error) {
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return strings.TrimSpace(string(data)), err
}

// startOf reads field 22 of /proc/PID/stat, the start in clock ticks after the
// boot. The second field, the name, is in brackets and may contain anything. A
// zombie has ended: only its parent has not looked yet.
func startOf(pid int) (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
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
	}
	_, rest, ok := strings.Cut(string(data[strings.LastIndexByte(string(data), ')')+1:]), " ")
	fields := strings.Fields(rest)
	const state, started = 0, 19 // fields 3 and 22, counted from 1 with the name
	if !ok || len(fields) <= started {
		return "", fmt.Errorf("read /proc/%d/stat: %q is not understood", pid, data)
	}
	if s := fields[state]; s == "Z" || s == "X" {
		return "", errGone
	}
	return fields[started], nil
}
