package cli

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
)

// An old Go that has fetched the right one for the checkout is not what learners' code is compiled with.
func TestTakeGoOfCheckout(t *testing.T) {
	dir := t.TempDir()
	for path, script := range map[string]string{
		"old/go":         `[ "${PWD##*/}" = checkout ] && echo "` + dir + `/fetched"`,
		"fetched/bin/go": "echo fetched for $GOOS",
		"checkout/file":  "",
	} {
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(dir, "old")+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("GOOS", "plan9")
	before := os.Getenv("PATH")
	if takeGo(t.Context(), dir); os.Getenv("PATH") != before {
		t.Error("PATH has changed although there is no Go")
	}
	takeGo(t.Context(), filepath.Join(dir, "checkout"))
	if out, err := exec.Command("go").Output(); err != nil || string(out) != "fetched for\n" {
		t.Errorf("go says %q, %v", out, err)
	}
}

func TestOnlyYesIsConsent(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "YES\n": true, "\n": false, "no\n": false, "yesterday\n": false} {
		person, program, err := pty.Open()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := person.WriteString(answer); err != nil {
			t.Fatal(err)
		}
		var said strings.Builder
		a := &App{In: program, Err: &said}
		if got := a.Agree("It costs root."); got != want || !strings.Contains(said.String(), "It costs root.") {
			t.Errorf("the answer %q is %v, after %q", answer, got, &said)
		}
		_ = errors.Join(person.Close(), program.Close())
	}
	script := &App{In: strings.NewReader("yes\n"), Err: io.Discard}
	if script.Agree("It costs root.") {
		t.Error("a script agrees without --yes")
	}
	if script.Yes = true; !script.Agree("It costs root.") {
		t.Error("--yes is no consent")
	}
}

// A report stays: what goes on afterwards stands below it.
func TestProgressTakesThePlaceOfTheLast(t *testing.T) {
	var screen strings.Builder
	a := &App{Out: &screen, Err: &screen, steps: &steps{}}
	a.Notice("made workspace")
	a.Progress("compiling")
	a.Progress("checking")
	a.Say("pass")
	a.Progress("cleaning up")
	if want := "… made workspace\n… compiling\n\x1b[1A\x1b[J… checking\npass\n… cleaning up\n"; screen.String() != want {
		t.Errorf("%q, want %q", screen.String(), want)
	}
}
