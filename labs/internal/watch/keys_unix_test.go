//go:build unix

package watch

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// terminal is a pair of a person's side and a program's side.
func terminal(t *testing.T) (person, program *os.File) {
	t.Helper()
	person, program, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = person.Close() // ends the reader of the keys, too
		_ = program.Close()
	})
	return person, program
}

func settings(t *testing.T, terminal *os.File) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(terminal.Fd()), getSettings)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

func TestATerminalGivesSingleKeysAndIsGivenBack(t *testing.T) {
	person, program := terminal(t)
	before := settings(t, program)
	k, err := OpenKeyboard(program)
	if err != nil {
		t.Fatal(err)
	}
	now := settings(t, program)
	if now.Lflag&(unix.ICANON|unix.ECHO) != 0 {
		t.Error("it gives lines, or shows what is typed")
	}
	if now.Lflag&unix.ISIG == 0 || now.Oflag != before.Oflag {
		t.Error("Ctrl-C is no signal any more, or lines no longer begin at the left edge")
	}
	keys := k.Keys(t.Context())
	if _, err := person.WriteString("h"); err != nil { // and no Enter
		t.Fatal(err)
	}
	select {
	case key := <-keys:
		if key != Hint {
			t.Errorf("h means %v", key)
		}
	case <-time.After(soon):
		t.Error("h did not arrive")
	}
	for range 2 {
		if err := k.Close(); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(before, settings(t, program)); diff != "" {
		t.Errorf("the terminal after it (-before +after):\n%s", diff)
	}
}

// A shell sets the terminal as it wants it when Ctrl-Z stops a program.
func TestAfterAStopTheTerminalGivesSingleKeysAgain(t *testing.T) {
	_, program := terminal(t)
	before := settings(t, program)
	k, err := OpenKeyboard(program)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	if err := unix.IoctlSetTermios(int(program.Fd()), setSettings, &before); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(soon); settings(t, program).Lflag&unix.ICANON != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it still gives lines")
		}
	}
}
