//go:build unix && !linux

package watch

import "golang.org/x/sys/unix"

const getSettings, setSettings = unix.TIOCGETA, unix.TIOCSETA
