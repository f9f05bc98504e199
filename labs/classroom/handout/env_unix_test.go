//go:build unix

package handout_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// source is what a shell has in its environment after env.sh, in another folder than that of the handout.
func source(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.Command("bash", "-euc", `source "$0/env.sh"; env -0`, dir)
	cmd.Dir = t.TempDir()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "CDPATH=/"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	set := map[string]string{}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		switch name {
		case "", "PATH", "CDPATH", "PWD", "OLDPWD", "SHLVL", "_":
		default:
			set[name] = value
		}
	}
	if left, err := os.ReadDir(cmd.Dir); err != nil || len(left) > 0 {
		t.Errorf("the script left %v, %v", left, err)
	}
	return set
}

func TestAShellLearnsOfTheHandout(t *testing.T) {
	h := full(t)
	hostile := `'; touch hacked; $(touch hacked) "` + "`touch hacked`" + ` \' ${HOME} \`
	h.Modules = "http://192.168.1.5:7777/" + hostile
	w := write(t, filepath.Join(t.TempDir(), "a room's folder"), h)
	want := map[string]string{
		"WORKSPACE":  filepath.Join(w.Dir, "workspace"),
		"KUBECONFIG": filepath.Join(w.Dir, "kubeconfig"),
		"LAB_BOARD":  filepath.Join(w.Dir, ".lab", "board.json"),
		"GOPROXY":    "http://192.168.1.5:7777/" + hostile,
		"GOSUMDB":    "off",
		"CLUSTER":    "room",

		"GOTOOLCHAIN": "local",
	}
	if diff := cmp.Diff(want, source(t, w.Dir)); diff != "" {
		t.Error(diff)
	}
	if err := os.Remove(filepath.Join(w.Dir, ".lab", "board.json")); err != nil {
		t.Fatal(err)
	}
	delete(want, "LAB_BOARD") // who deletes the file, sends nothing,
	delete(want, "CLUSTER")   // and borrows nothing
	if diff := cmp.Diff(want, source(t, w.Dir)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]string{"WORKSPACE": filepath.Join(w.Dir, "workspace")},
		source(t, write(t, filepath.Dir(w.Dir), bare()).Dir), cmp.Transformer("base", filepath.Base)); diff != "" {
		t.Error(diff)
	}
}
