package process

import (
	"errors"
	"fmt"

	"golang.org/x/sys/windows"
)

// bootID is constant: the start of a process on Windows is a date, which no
// later boot repeats.
func bootID() (string, error) { return "windows", nil }

func startOf(pid int) (string, error) {
	process, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return "", errGone
	}
	if err != nil {
		return "", err
	}
	defer windows.CloseHandle(process)
	var created, exited, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(process, &created, &exited, &kernel, &user); err != nil {
		return "", err
	}
	if exited.Nanoseconds() != (&windows.Filetime{}).Nanoseconds() {
		return "", errGone
	}
	return fmt.Sprint(created.Nanoseconds()), nil
}
