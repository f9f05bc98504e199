//go:build !windows

package workspace_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// The latest save in a stranger's workspace, and the name of the next one, which the stranger knows then.
const (
	latest = ".git/lab/saves/20990101T000000.000000000Z.tar"
	next   = ".git/lab/saves/20990101T000000.000000001Z.tar"
)

// packed is a save with these entries.
func packed(t *testing.T, reason string, entries ...tar.Header) string {
	t.Helper()
	var b bytes.Buffer
	out := tar.NewWriter(&b)
	records := map[string]string{"comment": reason}
	err := out.WriteHeader(&tar.Header{Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: records})
	for _, entry := range entries {
		entry.Mode = 0o644
		err = cmp.Or(err, out.WriteHeader(&entry))
	}
	if err = cmp.Or(err, out.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// settings writes into the settings of the repository.
func (b *fixture) settings(keysAndValues ...string) {
	b.Helper()
	for pair := range slices.Chunk(keysAndValues, 2) {
		b.git("config", "-f", ".git/config", pair[0], pair[1])
	}
}

// TestAStrangersWorkspaceReachesNothingElse has workspaces from elsewhere that name programs, or lead to other folders.
// Nobody runs a program for them, git included, and nothing is written elsewhere.
func TestAStrangersWorkspaceReachesNothingElse(t *testing.T) {
	promisor := func(settings ...string) func(f *fixture, elsewhere, ran string) {
		return func(f *fixture, _, ran string) {
			for i := range settings {
				settings[i] = strings.ReplaceAll(settings[i], "%", ran)
			}
			f.settings(append(settings, "core.repositoryformatversion", "1", "extensions.partialClone", "origin", "remote.origin.promisor", "true")...)
			f.write(".git/refs/lab/saves/20260101T000000.000000000Z", strings.Repeat("1", 40)+"\n") // which no object has
		}
	}
	link := func(name, to string) func(f *fixture, elsewhere, ran string) {
		return func(f *fixture, elsewhere, _ string) {
			f.write(name+"/x", "") // the folder is there, and link replaces the rest
			f.link(filepath.Join(elsewhere, to), name)
		}
	}
	for name, c := range map[string]struct {
		prepare func(f *fixture, elsewhere, ran string)
		refused bool
	}{
		"a remote by ssh":     {prepare: promisor("remote.origin.url", "ssh://x/y", "core.sshCommand", "touch %; false")},
		"a remote by ext":     {prepare: promisor("remote.origin.url", "ext::touch %", "protocol.ext.allow", "always")},
		"a remote by program": {prepare: promisor("remote.origin.url", "/nowhere", "remote.origin.uploadpack", "touch %; false")},
		"a hook in the settings": {prepare: func(f *fixture, _, ran string) {
			f.write(".git/more", "[hook \"a=b.event\"]\n\tevent = reference-transaction\n\tcommand = \"touch "+ran+" #\"\n")
			f.settings("include.path", "more")
		}},
		"hooks that are a file":      {prepare: func(f *fixture, _, _ string) { f.write(".git/hooks", "") }},
		"a log that is a link":       {prepare: link(".git/logs/refs/lab/saves/20990101T000000.000000001Z", "file")},
		"logs that are a link":       {prepare: link(".git/logs/refs", "")},
		"references that are a link": {prepare: link(".git/refs/lab", "")},
		"objects that are a link":    {prepare: link(".git/objects/pack", "")},
		"another repository":         {prepare: func(f *fixture, elsewhere, _ string) { f.write(".git/commondir", elsewhere+"\n") }},
		"a reference to a file":      {prepare: func(f *fixture, _, _ string) { f.write(".git/refs/heads/main", "ref: ../../x\n") }},
		"the next save is a link":    {prepare: link(next, "file")},
		"saves that are a link":      {refused: true, prepare: link(".git/lab/saves", "")},
		"saves that are a link to another folder of the repository": {refused: true, prepare: func(f *fixture, _, _ string) {
			f.remove(".git/lab/saves")
			f.link("../refs", ".git/lab/saves")
		}},
		"the next save is a link while it is written": {refused: true, prepare: link(next+".tmp", "file")},
		"the same to no file":                         {refused: true, prepare: link(next+".tmp", "none")},
		"the same to the settings":                    {refused: true, prepare: func(f *fixture, _, _ string) { f.link("../../config", next+".tmp") }},
		"the lock is a link":                          {refused: true, prepare: link(".git/lab/lock", "file")},
		"the lock is a link to no file":               {refused: true, prepare: link(".git/lab/lock", "none")},
	} {
		t.Run(name, func(t *testing.T) {
			f, elsewhere, ran := newWorkspace(t), &fixture{T: t, dir: t.TempDir()}, filepath.Join(t.TempDir(), "ran")
			elsewhere.write("file", "precious")
			before := elsewhere.tree()
			f.write(latest, packed(t, "before", tar.Header{Name: "theirs"}))
			f.write("notes", "mine")
			mine := f.tree()
			c.prepare(f, elsewhere.dir, ran)
			watched(t, "git", ran)
			_, resetErr := workspace.Reset(t.Context(), f.course, f.dir, 2)
			if (resetErr != nil) != c.refused {
				t.Errorf("reset: %v", resetErr)
			}
			if c.refused {
				f.mustEqual(mine)
			} else {
				f.mustEqual(f.stage(1))
				f.undo()
				f.mustEqual(mine)
			}
			_, _ = workspace.Saves(f.dir)
			_, _ = workspace.Restore(t.Context(), f.dir, "")
			if _, err := os.Stat(ran); err == nil {
				t.Error("a program ran")
			}
			if diff := before.Diff(elsewhere.tree()); diff != nil {
				t.Errorf("written elsewhere: %q", diff)
			}
		})
	}
}

// watched has whoever runs a program by its name leave a file.
func watched(t *testing.T, program, ran string) {
	t.Helper()
	real, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := "#!/bin/sh\ntouch '" + ran + "'\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(dir, program), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
}

// TestASaveLeadsNowhereElse has saves of a stranger that hold what no save of lab holds. Undo refuses each as a whole.
func TestASaveLeadsNowhereElse(t *testing.T) {
	f := newWorkspace(t)
	elsewhere := &fixture{T: t, dir: filepath.Join(filepath.Dir(f.dir), "elsewhere")}
	elsewhere.write("file", "precious")
	before, mine, settings := elsewhere.tree(), f.tree(), f.git("config", "--list")
	huge := packed(t, "before", tar.Header{Name: "huge", Format: tar.FormatPAX, PAXRecords: map[string]string{
		"XNU.sparse.major": "0", "XNU.sparse.minor": "1", "XNU.sparse.numblocks": "0", "XNU.sparse.size": "1100000000",
	}})
	for name, save := range map[string]string{
		"above":                    packed(t, "before", tar.Header{Name: "../elsewhere/x"}),
		"above, by a detour":       packed(t, "before", tar.Header{Name: "config/../../elsewhere/x"}),
		"absolute":                 packed(t, "before", tar.Header{Name: filepath.Join(elsewhere.dir, "x")}),
		"the workspace":            packed(t, "before", tar.Header{Name: "."}),
		"settings":                 packed(t, "before", tar.Header{Name: ".git/config"}),
		"a hook":                   packed(t, "before", tar.Header{Name: ".git/hooks/post-commit"}),
		"a hook, in other letters": packed(t, "before", tar.Header{Name: ".GIT/hooks/post-commit"}),
		"a hook below":             packed(t, "before", tar.Header{Name: "lib/.git/hooks/post-commit"}),
		"a hook, through a link": packed(t, "before", tar.Header{Name: "a", Typeflag: tar.TypeSymlink, Linkname: ".git/hooks"},
			tar.Header{Name: "a/post-commit"}),
		"a task of an editor": packed(t, "before", tar.Header{Name: ".vscode/tasks.json"}),
		"a hard link":         packed(t, "before", tar.Header{Name: "x", Typeflag: tar.TypeLink, Linkname: "../elsewhere/file"}),
		"a pipe":              packed(t, "before", tar.Header{Name: "x", Typeflag: tar.TypeFifo}),
		"a gigabyte of zeros": strings.ReplaceAll(huge, "XNU.sparse", "GNU.sparse"), // which a writer refuses
		"a long name":         packed(t, "before", tar.Header{Name: strings.Repeat("a/", 3000) + "a", Format: tar.FormatPAX}),
		"half a save":         packed(t, "before", tar.Header{Name: "x"})[:1800],
	} {
		t.Run(name, func(t *testing.T) {
			f.write(latest, save)
			if saves, err := workspace.Saves(f.dir); err != nil || len(saves) != 1 {
				t.Fatalf("%d saves, %v", len(saves), err)
			}
			if _, err := workspace.Restore(t.Context(), f.dir, ""); err == nil || !strings.Contains(err.Error(), "read the save 2099") ||
				strings.Contains(err.Error(), "\n") {
				t.Errorf("undo: %v", err)
			}
			f.mustEqual(mine)
		})
	}
	if diff := before.Diff(elsewhere.tree()); diff != nil {
		t.Errorf("written elsewhere: %q", diff)
	}
	if now := f.git("config", "--list"); now != settings {
		t.Errorf("settings: %s", now)
	}
	for _, name := range []string{".git/hooks", "lib"} {
		if _, err := os.Lstat(filepath.Join(f.dir, name)); err == nil {
			t.Errorf("written: %s", name)
		}
	}
}

// TestWhatIsNoSaveIsNotListed has files beside the saves, and among them.
func TestWhatIsNoSaveIsNotListed(t *testing.T) {
	f := newWorkspace(t)
	save := packed(t, "before")
	f.write(".git/lab/saves/notes.txt", save)
	f.write(".git/lab/saves/yesterday.tar", save)
	f.write(".git/lab/saves/20990101T000000.000000002Z.tar.tmp", save)
	f.write(".git/lab/saves/99991231T235959.999999999Z.tar", save) // no name comes after it
	f.write(latest, "no tar")
	f.write(next, packed(t, "before", tar.Header{Name: "x"})[1024:]) // without its reason
	f.write(".git/lab/saves/20990101T000000.000000003Z.tar/x", save)
	f.link("notes.txt", ".git/lab/saves/20990101T000000.000000004Z.tar")
	f.write(".git/lab/saves/20990101T000000.000000006Z", save)
	if saves, err := workspace.Saves(f.dir); err != nil || len(saves) > 0 {
		t.Errorf("%v, %v", saves, err)
	}
	if _, err := workspace.Restore(t.Context(), f.dir, ""); exit.Code(err) != exit.UsageError {
		t.Errorf("undo: %v", err)
	}
	if change := f.solve(1); change.Saved != "20990101T000000.000000005Z" {
		t.Errorf("saved as %q", change.Saved)
	}
	if saves, err := workspace.Saves(f.dir); err != nil || len(saves) != 1 {
		t.Errorf("%v, %v", saves, err)
	}
}
