package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/workspace"
)

// state is what a learner sees of their own repository.
func (b *fixture) state() string {
	b.Helper()
	index, err := os.ReadFile(filepath.Join(b.dir, ".git", "index"))
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(b.dir, ".git", "HEAD"))
	if err != nil {
		b.Fatal(err)
	}
	branches := b.git("for-each-ref", "refs/heads", "refs/tags", "refs/remotes", "refs/stash")
	return strings.Join([]string{string(head), branches, string(index)}, "\n--\n")
}

// unmoved runs solve and undo and expects branches, HEAD and index, byte for
// byte, to be what they were.
func (b *fixture) unmoved() {
	b.Helper()
	before, mine := b.state(), b.tree()
	b.solve(3)
	if after := b.state(); after != before {
		b.Errorf("solve moved\n%q\nto\n%q", before, after)
	}
	b.undo()
	if after := b.state(); after != before {
		b.Errorf("undo moved\n%q\nto\n%q", before, after)
	}
	b.mustEqual(mine)
}

func TestBranchIndexAndHeadStay(t *testing.T) {
	for name, prepare := range map[string]func(b *fixture){
		"as created": func(*fixture) {},
		"staged changes": func(b *fixture) {
			b.write("main.go", "package main // staged\n")
			b.git("add", "main.go")
			b.write("main.go", "package main // staged and changed again\n")
			b.write("new.go", "package main\n")
			b.git("add", "-N", "new.go")
		},
		"detached HEAD": func(b *fixture) { b.git("checkout", "--quiet", "--detach") },
		"another branch": func(b *fixture) {
			b.git("checkout", "--quiet", "-b", "lab/saves")
			b.git("commit", "--quiet", "--allow-empty", "-m", "empty")
			b.git("tag", "v1")
		},
		"a branch without commits": func(b *fixture) { b.git("checkout", "--quiet", "--orphan", "fresh") },
		"a merge with conflicts": func(b *fixture) {
			b.git("checkout", "--quiet", "-b", "theirs")
			b.write("main.go", "package main // theirs\n")
			b.git("commit", "--quiet", "-am", "theirs")
			b.git("checkout", "--quiet", "main")
			b.write("main.go", "package main // ours\n")
			b.git("commit", "--quiet", "-am", "ours")
			if out, err := b.tryGit("merge", "theirs"); err == nil {
				b.Fatalf("no conflict: %s", out)
			}
		},
		"stashed work": func(b *fixture) {
			b.write("main.go", "package main // stashed\n")
			b.git("stash")
		},
		"an index that somebody locked": func(b *fixture) { b.write(".git/index.lock", "") },
		"sparse checkout": func(b *fixture) {
			b.git("config", "core.sparseCheckout", "true")
			b.write(".git/info/sparse-checkout", "/docs/\n")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkspace(t)
			prepare(b)
			b.unmoved()
		})
	}
}

// The learner's settings for git may start programs and change bytes. None of
// them takes part in saving.
func TestSettingsDoNotTouchWhatIsSaved(t *testing.T) {
	b := newWorkspace(t)
	ran := filepath.Join(t.TempDir(), "ran")
	script := "#!/bin/sh\ncat >/dev/null\ntouch '" + ran + "'\nexit 1\n"
	b.write("hooks/x", script)
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change",
		"post-checkout", "pre-auto-gc", "fsmonitor-watchman"} {
		b.write(".git/hooks/"+hook, script)
		if err := os.Chmod(filepath.Join(b.dir, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(b.dir, "hooks/x"), 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(b.dir, "hooks/x")
	for key, value := range map[string]string{
		"core.fsmonitor": program, "core.autocrlf": "true", "core.eol": "crlf", "core.safecrlf": "true",
		"filter.mangle.clean": "tr a-z A-Z; touch " + ran, "filter.mangle.smudge": "tr A-Z a-z; touch " + ran,
		"filter.mangle.required": "true", "commit.gpgSign": "true", "gpg.program": program,
		"core.fileMode": "false", "core.symlinks": "false", "core.worktree": t.TempDir(), "core.ignoreCase": "true",
		"core.editor": program, "user.useConfigOnly": "true", "core.excludesFile": program,
	} {
		b.git("config", key, value)
	}
	b.write(".gitattributes", "* text eol=crlf filter=mangle ident working-tree-encoding=UTF-16\n")
	b.write("crlf", "one\r\ntwo\n$Id$\n")
	b.comesBack(2)
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the learner's settings was run")
	}
}

// The environment of a shell inside of a git hook points git at another
// repository.
func TestEnvironmentDoesNotMisleadGit(t *testing.T) {
	b := newWorkspace(t)
	other := t.TempDir()
	t.Setenv("GIT_DIR", other)
	t.Setenv("GIT_WORK_TREE", other)
	t.Setenv("GIT_INDEX_FILE", filepath.Join(other, "index"))
	t.Setenv("GIT_OBJECT_DIRECTORY", other)
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "core.bare")
	t.Setenv("GIT_CONFIG_VALUE_0", "nonsense")
	b.write("notes", "mine")
	b.comesBack(1)
	if entries, _ := os.ReadDir(other); len(entries) > 0 {
		t.Errorf("written to another repository: %v", entries)
	}
}

// A repository within the workspace keeps its history, and its files are saved
// like all others.
func TestNestedRepositoriesSurvive(t *testing.T) {
	b := newWorkspace(t)
	nested := &fixture{T: t, dir: filepath.Join(b.dir, "third_party", "lib")}
	nested.write("lib.go", "package lib\n")
	nested.git("init", "--quiet")
	nested.git("add", ".")
	nested.git("commit", "--quiet", "-m", "theirs")
	nested.write("lib.go", "package lib // changed\n")
	b.write("sub/.git", "gitdir: ../.git/modules/sub\n") // as a submodule has it
	b.write("sub/sub.go", "package sub\n")
	b.comesBack(1)
	if log := nested.git("log", "--format=%s"); log != "theirs" {
		t.Errorf("the history of the nested repository: %q", log)
	}
	if diff := nested.git("diff", "--stat"); !strings.Contains(diff, "lib.go") {
		t.Errorf("the change in the nested repository: %q", diff)
	}
	if _, err := os.Stat(filepath.Join(b.dir, "sub/.git")); err != nil {
		t.Error(err)
	}
}

// Around a workspace there may be a bigger repository. It notices nothing but
// a folder that is not its own.
func TestARepositoryAroundTheWorkspaceIsLeftAlone(t *testing.T) {
	b := newFixture(t)
	around := &fixture{T: t, dir: t.TempDir()}
	around.write("mine.txt", "mine")
	around.git("init", "--quiet")
	around.git("add", ".")
	around.git("commit", "--quiet", "-m", "mine")
	before := around.state()
	b.dir = filepath.Join(around.dir, "deep", "workspace")
	b.solve(1)
	b.solve(2)
	b.undo()
	if after := around.state(); after != before {
		t.Errorf("%q became %q", before, after)
	}
	if refs := around.git("for-each-ref", "refs/lab"); refs != "" {
		t.Errorf("saved in the wrong repository: %s", refs)
	}
}

func TestSavesSurviveGarbageCollection(t *testing.T) {
	b := newWorkspace(t)
	b.write("notes", "mine")
	mine := b.tree()
	b.solve(1)
	b.git("gc", "--quiet", "--prune=now", "--aggressive")
	b.undo()
	b.mustEqual(mine)
	if fsck := b.git("fsck", "--strict"); fsck != "" {
		t.Error(fsck)
	}
}

// A broken repository ends the command before anything is changed.
func TestNothingChangesWhenTheWorkCannotBeSaved(t *testing.T) {
	for name, damage := range map[string]func(b *fixture){
		"a damaged configuration": func(b *fixture) { b.write(".git/config", "[core\n") },
		"no objects":              func(b *fixture) { b.remove(".git/objects") },
		"refs that are a file": func(b *fixture) {
			b.remove(".git/refs/lab")
			b.write(".git/refs/lab", "")
		},
		"no git on PATH": func(b *fixture) { b.Setenv("PATH", b.TempDir()) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newWorkspace(t)
			b.write("notes", "mine")
			mine := b.tree()
			damage(b)
			if _, err := workspace.Solve(t.Context(), b.course, b.dir, 2); err == nil {
				t.Error("no error")
			} else if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %v", err)
			}
			b.mustEqual(mine)
		})
	}
}
