//go:build unix

package grade

import (
	"compress/zlib"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// write makes files in dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// read are all files in dir, and that they are for everybody to read.
func read(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil || entry.IsDir() {
			return err
		}
		if info.Mode() != 0o644 {
			t.Errorf("%s is %s", path, info.Mode())
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[filepath.ToSlash(rel)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// taking takes what is in dir.
func taking(t *testing.T, dir string) (module string, files map[string]string, err error) {
	t.Helper()
	to := filepath.Join(t.TempDir(), "workspace")
	module, err = take(t.Context(), Submission{Name: "x", ID: "x", Path: dir}, to)
	if err != nil {
		return "", nil, err
	}
	rel, _ := filepath.Rel(to, module)
	return rel, read(t, to), nil
}

func TestAFolderIsTakenWithoutWhatIsNoPartOfAModule(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"go.mod": "module x", "cmd/main.go": "package main", ".golangci.yml": "v", "internal/bin/keep.go": "package bin",
		"bin/manager": "program", ".git/config": "[core]", ".lab/results/lab-4.json": `{"verdict":"pass"}`, "a/.cache/x": "x",
	})
	module, got, err := taking(t, dir)
	want := map[string]string{"go.mod": "module x", "cmd/main.go": "package main", ".golangci.yml": "v", "internal/bin/keep.go": "package bin"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || module != "." {
		t.Error(module, err, diff)
	}
}

func TestTheModuleMayBeTheWorkspaceOfACheckout(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"START.md": "hello", "workspace/go.mod": "module x", "workspace/bin/x": "program"})
	module, got, err := taking(t, dir)
	if diff := cmp.Diff(map[string]string{"START.md": "hello", "workspace/go.mod": "module x"}, got); diff != "" || err != nil || module != "workspace" {
		t.Error(module, err, diff)
	}
}

// Each file that is opened is looked for from the top.
func TestFoldersInHundredsOfFoldersAreRefused(t *testing.T) {
	for depth, why := range map[int]string{depthLimit: "", depthLimit + 1: "lies in more than 64 folders"} {
		dir := t.TempDir()
		files := map[string]string{"go.mod": "module x", strings.Repeat("d/", depth) + "x.go": "package x"}
		write(t, dir, files)
		for form, path := range map[string]string{"folder": dir, "repository": bare(t, files, nil)} {
			_, _, err := taking(t, path)
			refused, _ := errors.AsType[*Refused](err)
			if why == "" && err != nil || why != "" && (refused == nil || !strings.Contains(refused.Why, why)) {
				t.Errorf("%s, %d: %v", form, depth, err)
			}
		}
	}
}

// Each of them is looked for, too, and its way may be long.
func TestLinksToNowhereCount(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/b": "1"})
	if err := errors.Join(os.Symlink("nowhere", filepath.Join(dir, "c")), os.Symlink("a", filepath.Join(dir, "d"))); err != nil {
		t.Fatal(err)
	}
	for files, ok := range map[int]bool{4: true, 3: false} {
		c := &taken{to: t.TempDir(), bytesLeft: 1, filesLeft: files}
		err := c.folder(t.Context(), dir, skipped)
		if _, refused := errors.AsType[*Refused](err); ok != (err == nil) || !ok && !refused {
			t.Errorf("%d: %v", files, err)
		}
	}
}

// A copy that does not end in time is the learner's; one that is broken off is nobody's.
func TestACopyHasALimitOfTime(t *testing.T) {
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	broken, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		ctx     context.Context
		refused bool
	}{"too late": {late, true}, "broken off": {broken, false}} {
		c := &taken{to: t.TempDir(), bytesLeft: 1, filesLeft: 1}
		err := c.folder(tc.ctx, t.TempDir(), skipped)
		if _, refused := errors.AsType[*Refused](err); err == nil || refused != tc.refused {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNothingOutsideOfAFolderIsRead(t *testing.T) {
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "secret", "sub/secret": "secret"})
	for name, link := range map[string]struct{ at, to string }{
		"a file":                     {"cmd/main.go", filepath.Join(outside, "secret")},
		"a folder":                   {"vendor", outside},
		"the root":                   {"root", "/"},
		"upwards":                    {"cmd/up.go", "../../" + filepath.Base(outside) + "/secret"},
		"an absolute path to itself": {"cmd/self.go", "SELF/go.mod"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, map[string]string{"go.mod": "module x", "cmd/other.go": "package main"})
			if err := os.Symlink(strings.ReplaceAll(link.to, "SELF", dir), filepath.Join(dir, link.at)); err != nil {
				t.Fatal(err)
			}
			_, got, err := taking(t, dir)
			var refused *Refused
			if !errors.As(err, &refused) || !strings.Contains(refused.Why, link.at) || !strings.Contains(refused.Why, "leads out") {
				t.Errorf("%v, and there is %v", err, got)
			}
		})
	}
}

func TestLinksWithinAFolderAreTheirFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a/b/c.go": "package b"})
	err := errors.Join(
		os.Symlink("a/b/c.go", filepath.Join(dir, "c.go")), os.Symlink("../b/c.go", filepath.Join(dir, "a/b/d.go")),
		os.Symlink("nowhere", filepath.Join(dir, "e.go")), os.Symlink(".", filepath.Join(dir, "loop")),
	)
	if err != nil {
		t.Fatal(err)
	}
	_, got, err := taking(t, dir)
	if diff := cmp.Diff(map[string]string{"a/b/c.go": "package b", "c.go": "package b", "a/b/d.go": "package b"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestWhatIsNoFileIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	var refused *Refused
	if _, _, err := taking(t, dir); !errors.As(err, &refused) || !strings.Contains(refused.Why, "pipe") {
		t.Error(err)
	}
	link := filepath.Join(t.TempDir(), "learner")
	if err := os.Symlink("/", link); err != nil {
		t.Fatal(err)
	}
	if _, _, err := taking(t, link); !errors.As(err, &refused) {
		t.Error(err)
	}
}

func TestThereIsALimit(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a": "12345", "b/c": "12345"})
	for _, tc := range []struct {
		bytes int64
		files int
		ok    bool
	}{{10, 3, true}, {9, 3, false}, {10, 2, false}} {
		c := &taken{to: t.TempDir(), bytesLeft: tc.bytes, filesLeft: tc.files}
		err := c.folder(t.Context(), dir, skipped)
		var refused *Refused
		if tc.ok != (err == nil) || !tc.ok && !errors.As(err, &refused) {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// bare makes a bare repository with the files as its only commit.
func bare(t *testing.T, files map[string]string, links map[string]string) string {
	t.Helper()
	work, dir := t.TempDir(), filepath.Join(t.TempDir(), "ada.git")
	write(t, work, files)
	for at, to := range links {
		if err := os.Symlink(to, filepath.Join(work, at)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, work, "init", "--quiet", "--initial-branch=main")
	git(t, work, "add", "--all")
	git(t, work, "-c", "user.name=a", "-c", "user.email=a@example.test", "commit", "--quiet", "-m", "all")
	git(t, work, "clone", "--quiet", "--bare", work, dir)
	return dir
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	return gitReading(t, dir, "", args...)
}

// tree makes a folder of git's, of entries as git ls-tree prints them.
func tree(t *testing.T, dir string, entries ...string) string {
	t.Helper()
	return gitReading(t, dir, strings.Join(entries, "\n")+"\n", "mktree")
}

func gitReading(t *testing.T, dir, stdin string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestABareRepositoryIsTakenAtItsHead(t *testing.T) {
	dir := bare(t, map[string]string{"go.mod": "module x", "cmd/main.go": "package main", "bin/x": "program", ".hidden/x": "x"}, map[string]string{"l": "go.mod"})
	module, got, err := taking(t, dir)
	if diff := cmp.Diff(map[string]string{"go.mod": "module x", "cmd/main.go": "package main"}, got); diff != "" || err != nil || module != "." {
		t.Error(module, err, diff)
	}
}

// git archives the link, and nobody can unpack it: that is not the machine's fault.
func TestALinkThatNoArchiveHoldsIsTheLearners(t *testing.T) {
	dir := bare(t, map[string]string{"go.mod": "module x"}, nil)
	link := gitReading(t, dir, "x\x00"+strings.Repeat("y", 200), "hash-object", "-w", "--stdin")
	root := tree(t, dir, "120000 blob "+link+"\tlink")
	commit := git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.test", "commit-tree", "-m", "all", root)
	git(t, dir, "update-ref", "refs/heads/main", commit)
	var refused *Refused
	if _, _, err := taking(t, dir); !errors.As(err, &refused) || !strings.Contains(refused.Why, "no archive can hold") {
		t.Error(err)
	}
}

func TestARepositoryRunsNothing(t *testing.T) {
	ran := filepath.Join(t.TempDir(), "ran")
	touch := "touch " + ran
	dir := bare(t, map[string]string{"go.mod": "module x", ".gitattributes": "* filter=evil diff=evil\n"}, nil)
	for _, setting := range [][2]string{
		{"filter.evil.smudge", touch}, {"filter.evil.process", touch}, {"filter.evil.required", "true"}, {"diff.evil.textconv", touch},
		{"core.fsmonitor", touch}, {"core.sshCommand", touch}, {"core.alternateRefsCommand", touch}, {"core.pager", touch},
		{"tar.tar.command", touch}, {"core.hooksPath", filepath.Join(dir, "hooks")},
	} {
		git(t, dir, "config", setting[0], setting[1])
	}
	for _, hook := range []string{"post-checkout", "post-index-change", "reference-transaction"} {
		file := filepath.Join(dir, "hooks", hook)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte("#!/bin/sh\n"+touch+"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	_, got, err := taking(t, dir)
	if err != nil || got["go.mod"] != "module x" {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("something of the repository was run")
	}
}

// Git can put into a file what the signature of a commit is worth, and runs gpg to find out.
func TestNoSignatureIsLookedAt(t *testing.T) {
	const asks = "$Format:%G?%GG$\n"
	dir := bare(t, map[string]string{"go.mod": "module x", ".gitattributes": "v.txt export-subst\n", "v.txt": asks}, nil)
	commit := git(t, dir, "cat-file", "commit", "HEAD")
	head, message, _ := strings.Cut(commit, "\n\n")
	signature := "gpgsig -----BEGIN PGP SIGNATURE-----\n \n AAAA\n -----END PGP SIGNATURE-----\n"
	signed := gitReading(t, dir, head+"\n"+signature+"\n"+message+"\n", "hash-object", "-t", "commit", "-w", "--stdin")
	git(t, dir, "update-ref", "refs/heads/main", signed)
	bin, ran := t.TempDir(), filepath.Join(t.TempDir(), "ran")
	if err := os.WriteFile(filepath.Join(bin, "gpg"), []byte("#!/bin/sh\ntouch "+ran+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	_, got, err := taking(t, dir)
	if err != nil || got["v.txt"] != asks {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("gpg was run")
	}
}

// The C library converts whatever encoding a file names, and has done so with mistakes.
func TestNoEncodingIsConverted(t *testing.T) {
	const written, kept = "caf\xc3\xa9\n", "caf\u00c3\u00a9\n" // two letters of ISO-8859-1, and what git keeps of them: UTF-8
	_, got, err := taking(t, bare(t, map[string]string{"go.mod": "module x", "v.txt": written, ".gitattributes": "v.txt working-tree-encoding=ISO-8859-1\n"}, nil))
	if err != nil || got["v.txt"] != kept {
		t.Errorf("%q, %v", got, err)
	}
}

// What is judged is what somebody gets who clones the repository.
func TestNoAttributeHidesOrChangesAFile(t *testing.T) {
	files := map[string]string{
		"go.mod": "module x", "config/rbac/more.yaml": "kind: ClusterRoleBinding\n", "hidden/wrong.go": "package hidden\n", "a.txt": "$Id$\n",
	}
	committed := maps.Clone(files)
	committed[".gitattributes"] = "/config/rbac/more.yaml export-ignore\nhidden export-ignore\n*.txt text eol=crlf ident\n"
	_, got, err := taking(t, bare(t, committed, nil))
	delete(got, ".gitattributes")
	if diff := cmp.Diff(files, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// Whoever knows the name of somebody else's commit could hand it in as their own.
func TestARepositoryBorrowsNothing(t *testing.T) {
	others := bare(t, map[string]string{"go.mod": "module right"}, nil)
	commit := git(t, others, "rev-parse", "HEAD")
	for name, borrow := range map[string]func(dir string) error{
		"objects": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "objects", "info", "alternates"), []byte(filepath.Join(others, "objects")+"\n"), 0o600)
		},
		"all": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "commondir"), []byte(others+"\n"), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := bare(t, map[string]string{"go.mod": "module mine"}, nil)
			if err := errors.Join(borrow(dir), os.WriteFile(filepath.Join(dir, "HEAD"), []byte(commit+"\n"), 0o600)); err != nil {
				t.Fatal(err)
			}
			var refused *Refused
			if _, got, err := taking(t, dir); !errors.As(err, &refused) || len(got) > 0 {
				t.Errorf("%v, %v", got, err)
			}
		})
	}
}

func TestALinkOutOfARepositoryIsRefused(t *testing.T) {
	var refused *Refused
	if _, got, err := taking(t, bare(t, map[string]string{"go.mod": "module x"}, map[string]string{"root": "/"})); !errors.As(err, &refused) {
		t.Errorf("%v, %v", got, err)
	}
}

// A megabyte of zeros takes a kilobyte in a repository. git would ask for all that the object claims to have before it
// looks at it.
func TestARepositoryTakesNoMemory(t *testing.T) {
	dir := bare(t, map[string]string{"go.mod": "module x"}, nil)
	const claimed = 512 << 20
	commit := strings.Repeat("ab", 20)
	file := filepath.Join(dir, "objects", commit[:2], commit[2:])
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	object, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	w := zlib.NewWriter(object)
	_, err = fmt.Fprintf(w, "commit %d\x00", claimed)
	zeros := make([]byte, 1<<20)
	for written := 0; err == nil && written < claimed; written += len(zeros) {
		_, err = w.Write(zeros)
	}
	if err := errors.Join(err, w.Close(), object.Close(), os.WriteFile(filepath.Join(dir, "HEAD"), []byte(commit+"\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	var refused *Refused
	if _, _, err := taking(t, dir); !errors.As(err, &refused) || !strings.Contains(refused.Why, "over limit") {
		t.Error(err)
	}
}

func TestAFileThatIsReadHereHasALimit(t *testing.T) {
	large := strings.Repeat("x", sourceLimit+1)
	for name, ok := range map[string]bool{
		"a.go": false, "config/crd/a.yaml": false, "go.sum": false, "a.bin": true, "vendor/a/a.go": true, "workspace/vendor/a.go": true,
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{name: large})
		var refused *Refused
		_, _, err := taking(t, dir)
		if ok != (err == nil) || !ok && (!errors.As(err, &refused) || !strings.Contains(refused.Why, name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGitHasALimitOfMemory(t *testing.T) {
	dir := bare(t, map[string]string{"go.mod": "module x"}, nil)
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte("#!/bin/sh\nulimit -v >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	var refused *Refused
	if _, _, err := taking(t, dir); !errors.As(err, &refused) || !strings.Contains(refused.Why, fmt.Sprint(gitMemory)) {
		t.Errorf("%v does not say %d", err, gitMemory)
	}
}

// git takes names that no disk here does: too long, or once a file and once a folder.
func TestNamesThatNoFileCanHaveAreRefused(t *testing.T) {
	dir := bare(t, map[string]string{"go.mod": "module x"}, nil)
	blob := git(t, dir, "rev-parse", "HEAD:go.mod")
	for name, entries := range map[string][]string{
		"too long":         {"100644 blob " + blob + "\t" + strings.Repeat("a", 300)},
		"twice":            {"100644 blob " + blob + "\ta", "100644 blob " + blob + "\ta"},
		"file and folder":  {"100644 blob " + blob + "\ta", "040000 tree " + tree(t, dir, "100644 blob "+blob+"\tb") + "\ta"},
		"too long, folder": {"040000 tree " + tree(t, dir, "100644 blob "+blob+"\tb") + "\t" + strings.Repeat("a", 300)},
	} {
		t.Run(name, func(t *testing.T) {
			commit := git(t, dir, "-c", "user.name=a", "-c", "user.email=a@example.test", "commit-tree", "-m", "x", tree(t, dir, entries...))
			git(t, dir, "update-ref", "HEAD", commit)
			var refused *Refused
			if _, _, err := taking(t, dir); !errors.As(err, &refused) || !strings.Contains(refused.Why, "name of a file") {
				t.Error(err)
			}
		})
	}
}
