package watch

import "golang.org/x/sys/unix"

const getSettings, setSettings = unix.TCGETS, unix.TCSETS
