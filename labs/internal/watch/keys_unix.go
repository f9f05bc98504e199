//go:build unix

package watch

import (
	"os"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// singleKeys takes from a terminal its lines and its echo, and nothing else: Ctrl-C stays a signal, and what is
// written begins at the left edge, as it would not in raw mode.
func singleKeys(fd int) error {
	settings, err := unix.IoctlGetTermios(fd, getSettings)
	if err != nil {
		return err
	}
	settings.Lflag &^= unix.ICANON | unix.ECHO
	settings.Cc[unix.VMIN], settings.Cc[unix.VTIME] = 1, 0
	return unix.IoctlSetTermios(fd, setSettings, settings)
}

// afterStop calls again whenever the process goes on after a Ctrl-Z, as the shell has set the terminal meanwhile. After
// ignore, which may be called twice, it no longer does.
func afterStop(again func()) (ignore func()) {
	continued, end, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(continued, syscall.SIGCONT)
	go func() {
		defer close(ended)
		for {
			select {
			case <-continued:
				again()
			case <-end:
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		signal.Stop(continued)
		close(end)
		<-ended
	})
}
