package meter

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// Machine is the processor time of everything that ran on this machine since it started, in all cores together. It
// counts what others do, too.
func Machine() (time.Duration, error) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("read processor time of the machine: %w", err)
	}
	return busy(string(data))
}

// Tree is the processor time of this process and of all its descendants: those that live, and those that have ended
// and were waited for. It does not contain what other processes do for them, such as a container engine.
func Tree() (time.Duration, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return 0, fmt.Errorf("read processor time: %w", err)
	}
	var all []process
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it has ended
		}
		if err != nil {
			return 0, fmt.Errorf("read processor time: %w", err)
		}
		p, err := parseProcess(string(data))
		if err != nil {
			return 0, err
		}
		all = append(all, p)
	}
	return tree(os.Getpid(), all), nil
}
