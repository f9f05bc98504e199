package watch

import "golang.org/x/sys/windows"

// singleKeys takes from a console its lines and its echo, and nothing else: Ctrl-C stays a signal.
func singleKeys(fd int) error {
	var mode uint32
	if err := windows.GetConsoleMode(windows.Handle(fd), &mode); err != nil {
		return err
	}
	return windows.SetConsoleMode(windows.Handle(fd), mode&^(windows.ENABLE_LINE_INPUT|windows.ENABLE_ECHO_INPUT))
}

// afterStop has nothing to do: no process is stopped from a console.
func afterStop(func()) (ignore func()) { return func() {} }
