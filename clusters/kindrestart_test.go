//go:build unix

package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scripted is a provider whose engine is a script, and a file with what that was told.
func scripted(t *testing.T, script string) (k *Kind, told string) {
	t.Helper()
	bin := t.TempDir()
	told = filepath.Join(bin, "told")
	text := "#!/bin/sh\necho \"$@\" >> " + told + "\n" + script
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	k, err := NewKind(t.TempDir(), WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	return k, told
}

func TestRestartStartsThePausedToo(t *testing.T) {
	k, told := scripted(t, `case "$1" in ps) echo lab-x-control-plane;; unpause) echo "is not paused" >&2; exit 1;; esac`)
	if err := k.Restart(t.Context(), "lab-x"); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(told)
	if err != nil || !strings.HasSuffix(string(data), "unpause lab-x-control-plane\nrestart lab-x-control-plane\n") {
		t.Errorf("the engine was told %q, %v", data, err)
	}
}

func TestANodeThatIsGoneCannotBeRestarted(t *testing.T) {
	k, _ := scripted(t, "exit 0")
	if err := k.Restart(t.Context(), "lab-x"); !errors.Is(err, errNoCluster) {
		t.Errorf("Restart() = %v, want no such cluster", err)
	}
}

func TestARestartThatFailsSaysWhatTheEngineSaid(t *testing.T) {
	k, _ := scripted(t, `case "$1" in ps) echo lab-x-control-plane;; restart) echo "port is already allocated" >&2; exit 1;; esac`)
	err := k.Restart(t.Context(), "lab-x")
	if p, ok := errors.AsType[*Problem](err); !ok || !strings.Contains(p.Error(), "already allocated") || p.Fix != FixCluster {
		t.Errorf("Restart() = %v", err)
	}
}
