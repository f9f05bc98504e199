package mutants

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestChanged(t *testing.T) {
	root := coursetest.New(t)
	git := func(args string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@b"}, strings.Fields(args)...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	expect := func(when, want string) {
		t.Helper()
		changed, found := Changed(t.Context(), root), ""
		for _, folder := range []string{"labs/01-hello", "labs/02-name", "operator"} {
			if changed(folder) {
				found += folder + " "
			}
		}
		if got := strings.TrimSpace(found); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	commit := func(name string) {
		t.Helper()
		coursetest.Write(t, root, name, "new")
		git("add -A")
		git("commit -qm change")
	}
	git("init -q -b main")
	expect("without history", "")
	commit("README.md")
	expect("the first commit", "")
	commit("labs/02-name/notes.md")
	expect("the last commit", "labs/02-name")
	git("update-ref refs/remotes/origin/HEAD HEAD~1")
	commit("README.md2")
	expect("a branch", "labs/02-name")
	coursetest.Write(t, root, "labs/01-hello/mutants/new.patch", "")
	expect("a file that is not committed", "labs/01-hello labs/02-name")
	coursetest.Write(t, root, "operator/new.go", "")
	expect("the operator", "labs/01-hello labs/02-name operator")
}
