// Package supervisor runs the programs of one control plane as the children of
// one process, which ends them all when it ends, however that happens.
//
// The supervisor is a process of its own, in a session of its own, so that it can
// outlive the command that started it by the moment that cleaning up takes, or for
// good where that was asked for.
package supervisor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/clusters/internal/process"
)

// Plan is what a supervisor runs.
type Plan struct {
	// Programs are started side by side.
	Programs []Program `json:"programs"`
}

// Program is one program of a plan. It works in the plan's folder and has no
// environment but Env.
type Program struct {
	Name string   `json:"name"`
	Path string   `json:"path"`
	Args []string `json:"args"`
	Env  []string `json:"env,omitempty"`
	// After is an address that must take connections before the program starts: a
	// path for a socket in the plan's folder, or host:port. For a URL the answer has to be 200. "" starts it at once.
	After string `json:"after,omitempty"`
	// Token is the bearer token with which a URL is asked.
	Token string `json:"token,omitempty"`
}

// State is what a supervisor keeps about itself, for everybody who has to find
// its processes.
type State struct {
	Supervisor process.ID `json:"supervisor"`
	// Kept says that the supervisor goes on without the process that started it.
	Kept     bool      `json:"kept"`
	Programs []Running `json:"programs"`
}

// Running is a program that was started.
type Running struct {
	Name    string     `json:"name"`
	Process process.ID `json:"process"`
	// Starts counts how often it was started.
	Starts int `json:"starts"`
	// Ended is how it ended, "" while it runs.
	Ended string `json:"ended,omitempty"`
}

const (
	planFile  = "plan.json"
	stateFile = "processes.json"
	logFolder = "logs"
)

// Logs is the folder with one file for each program of the plan in dir.
func Logs(dir string) string { return filepath.Join(dir, logFolder) }

// Log is the file that a program of the plan in dir writes to.
func Log(dir, program string) string { return filepath.Join(Logs(dir), program+".log") }

// WritePlan puts the plan into its folder.
func WritePlan(dir string, plan Plan) error {
	if err := os.MkdirAll(Logs(dir), 0o700); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	if err := writeJSON(filepath.Join(dir, planFile), plan); err != nil {
		return fmt.Errorf("write plan: %w", err)
	}
	return nil
}

// ReadState reads what the supervisor of dir wrote. The error is fs.ErrNotExist
// when none has begun.
func ReadState(dir string) (State, error) {
	var s State
	data, err := os.ReadFile(filepath.Join(dir, stateFile))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return State{}, fmt.Errorf("read state of supervisor: %w", err)
	}
	return s, nil
}

// Program finds a program by name, nil if it was never started.
func (s State) Program(name string) *Running {
	for i := range s.Programs {
		if s.Programs[i].Name == name {
			return &s.Programs[i]
		}
	}
	return nil
}

// Processes are all that were started last, the supervisor first.
func (s State) Processes() []process.ID {
	ids := []process.ID{s.Supervisor}
	for _, p := range s.Programs {
		ids = append(ids, p.Process)
	}
	return ids
}

// living are the processes that run.
func (s State) living() []process.ID {
	return slices.DeleteFunc(s.Processes(), func(id process.ID) bool { return id.PID <= 0 || !id.Alive() })
}

// writeJSON replaces path as a whole, so that no reader sees half of it.
func writeJSON(path string, value any) error {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(path, append(data, '\n'), 0o600)
}

const (
	// endTimeout is what a supervisor has to end everything before it is killed
	// itself. Its programs get no time to say goodbye: nobody needs their data.
	endTimeout = 5 * time.Second
	// endPoll is how often to look whether processes that are not our children are
	// gone, which nothing announces.
	endPoll = 5 * time.Millisecond
)

// End ends all processes of the plan in dir, whoever started them, sees that they
// are gone, and removes dir.
func End(dir string) error {
	state, err := ReadState(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		// The supervisor ends by itself where there is nothing to begin with.
	case err != nil:
		return err
	default:
		if err := endAll(dir, state); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove %s: %w", dir, err)
	}
	return nil
}

func endAll(dir string, state State) error {
	if state.Supervisor.Alive() {
		if err := ask(state.Supervisor.PID); err != nil {
			return fmt.Errorf("end supervisor: %w", err)
		}
		gone(endTimeout, state.Supervisor.Alive)
	}
	// It may have started one more since its state was read.
	if latest, err := ReadState(dir); err == nil {
		state = latest
	}
	for _, id := range state.living() {
		kill(id.PID)
	}
	if !gone(endTimeout, func() bool { return len(state.living()) > 0 }) {
		return fmt.Errorf("end processes %v: they are still there", state.living())
	}
	return nil
}

// gone waits until alive says no, and returns whether it did. It asks again and again: nobody is told of the
// end of a process that is not a child.
func gone(timeout time.Duration, alive func() bool) bool {
	for end := time.Now().Add(timeout); alive(); time.Sleep(endPoll) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
