// Package process tells whether a process that was written down some time ago
// is still the same process. A process number alone does not: numbers are used
// again, and start anew with every boot.
package process

import (
	"errors"
	"fmt"
	"os"
)

// ID names one process for good.
type ID struct {
	PID int `json:"pid"`
	// Started is when the process started, in the unit of the operating system;
	// it is only ever compared for equality.
	Started string `json:"started"`
	// Boot names the boot of the machine in which PID means something.
	Boot string `json:"boot"`
}

// errGone says that there is no process of that number.
var errGone = errors.New("no such process")

// Self is the ID of this process.
func Self() (ID, error) { return Of(os.Getpid()) }

// Of is the ID of the process that has this number now.
func Of(pid int) (ID, error) {
	boot, err := bootID()
	if err != nil {
		return ID{}, fmt.Errorf("read boot id: %w", err)
	}
	started, err := startOf(pid)
	if err != nil {
		return ID{}, fmt.Errorf("read start of process %d: %w", pid, err)
	}
	return ID{PID: pid, Started: started, Boot: boot}, nil
}

// Alive says whether the process still runs. When that cannot be told, it says
// yes: whoever asks is about to remove what the process owns.
func (id ID) Alive() bool {
	boot, err := bootID()
	if err == nil && boot != id.Boot {
		return false
	}
	started, err := startOf(id.PID)
	if errors.Is(err, errGone) {
		return false
	}
	return err != nil || started == id.Started
}
