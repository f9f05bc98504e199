package handout_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/classroom/board/token"
	"github.com/example/operator-lab/labs/classroom/handout"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/workspace"
)

var update = flag.Bool("update", false, "write testdata anew")

const (
	secret = "abcdefghijklmnopqrstuvwxyz"
	key    = "c2VjcmV0LWtleQ=="
	// serverKey is that of a room's server.
	serverKey = "sha256//AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
)

func learnersToken(t *testing.T) token.Token {
	t.Helper()
	made, err := token.Parse("labboard-ab12cd34-" + secret)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

const goodKubeconfig = `apiVersion: v1
kind: Config
clusters:
- name: lab
  cluster: {server: "https://192.168.1.5:41001", certificate-authority-data: ` + key + `}
users:
- name: lab
  user: {client-certificate-data: ` + key + `, client-key-data: ` + key + `}
contexts:
- name: lab
  context: {cluster: lab, user: lab}
current-context: lab
`

func kubeconfig(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// full is a handout with everything in it.
func full(t *testing.T) handout.Handout {
	t.Helper()
	return handout.Handout{
		Learner:    handout.Learner{ID: "learner-7", Name: "Ada"},
		Kubeconfig: kubeconfig(t, goodKubeconfig),
		Key:        serverKey,
		Board:      &handout.Board{URL: "https://192.168.1.5:7777", Token: learnersToken(t)},
		Course:     &handout.Download{URL: "https://192.168.1.5:7777/course.tar.gz", SHA256: strings.Repeat("ab", 32)},
		Modules:    "http://192.168.1.5:7777/modules",
		Lends:      true,
		Workspace:  small(),
	}
}

// bare is one with the least.
func bare() handout.Handout {
	return handout.Handout{Learner: handout.Learner{ID: "learner-8"}, Workspace: small()}
}

func small() course.Tree {
	return course.Tree{
		"main.go":         {Data: []byte("package main\n"), Mode: 0o644},
		"hack/run.sh":     {Data: []byte("#!/bin/sh\n"), Mode: 0o755},
		".git/HEAD":       {Data: []byte("ref: refs/heads/main\n"), Mode: 0o644},
		"api/v1/types.go": {Data: []byte("package v1\n"), Mode: 0o644},
	}
}

func write(t *testing.T, dir string, h handout.Handout) handout.Written {
	t.Helper()
	w, err := handout.Write(t.Context(), dir, h)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(elem...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// golden compares a text with testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(read(t, file), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestTheTexts(t *testing.T) {
	dir := t.TempDir()
	everything, least := write(t, dir, full(t)), write(t, dir, bare())
	for _, name := range []string{"START.md", "env.sh", "env.ps1"} {
		golden(t, "full-"+name, read(t, everything.Dir, name))
		golden(t, "bare-"+name, read(t, least.Dir, name))
	}
}

// contents are the files of a folder with their modes, and the folders in it.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(dir), name)
		if err != nil {
			return err
		}
		found[filepath.ToSlash(rel)] = info.Mode().String()
		if info.Mode().IsRegular() {
			found[filepath.ToSlash(rel)] += " " + read(t, name)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestAHandoutIsForItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "room")
	w := write(t, dir, full(t))
	var got []string
	for name, text := range contents(t, w.Dir) {
		mode, _, _ := strings.Cut(text, " ")
		got = append(got, mode+" "+name)
	}
	slices.Sort(got)
	want := []string{
		"-rw------- learner-7/.lab/board.json",
		"-rw------- learner-7/.lab/handout.json",
		"-rw------- learner-7/START.md",
		"-rw------- learner-7/env.ps1",
		"-rw------- learner-7/env.sh",
		"-rw------- learner-7/kubeconfig",
		"-rw------- learner-7/workspace/.git/HEAD",
		"-rw------- learner-7/workspace/api/v1/types.go",
		"-rw------- learner-7/workspace/main.go",
		"-rwx------ learner-7/workspace/hack/run.sh",
		"drwx------ learner-7",
		"drwx------ learner-7/.lab",
		"drwx------ learner-7/workspace",
		"drwx------ learner-7/workspace/.git",
		"drwx------ learner-7/workspace/api",
		"drwx------ learner-7/workspace/api/v1",
		"drwx------ learner-7/workspace/hack",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{dir: "drwx------", w.Archive: "-rw-------"} {
		if info, err := os.Stat(name); err != nil || info.Mode().String() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if got := read(t, w.Dir, "kubeconfig"); got != goodKubeconfig {
		t.Errorf("kubeconfig:\n%s", got)
	}
}

// What stands in .lab is read by lab check, as it is.
func TestTheBoardIsFound(t *testing.T) {
	t.Setenv("LAB_BOARD", "")
	w := write(t, t.TempDir(), full(t))
	got, err := roomclient.ReadConfig(filepath.Join(w.Dir, ".lab"))
	want := roomclient.Config{URL: "https://192.168.1.5:7777", Key: serverKey, Token: "labboard-ab12cd34-" + secret, Learner: "Ada"}
	if err != nil || *got != want {
		t.Errorf("%+v, %v", got, err)
	}
}

func openArchive(t *testing.T, name string) *zip.ReadCloser {
	t.Helper()
	r, err := zip.OpenReader(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestTheArchiveIsTheFolder(t *testing.T) {
	w := write(t, t.TempDir(), full(t))
	got := map[string]string{}
	for _, f := range openArchive(t, w.Archive).File {
		name := strings.TrimSuffix(f.Name, "/")
		if !filepath.IsLocal(name) || strings.Contains(name, `\`) {
			t.Errorf("%q leads out of the archive", f.Name)
		}
		if name != "learner-7" && !strings.HasPrefix(name, "learner-7/") {
			t.Errorf("%q is not in the folder of the learner", f.Name)
		}
		if _, twice := got[name]; twice {
			t.Errorf("%q is there twice", name)
		}
		got[name] = f.Mode().String()
		if !f.Mode().IsDir() {
			got[name] += " " + text(t, f)
		}
	}
	if diff := cmp.Diff(contents(t, w.Dir), got); diff != "" {
		t.Errorf("(-folder +archive)\n%s", diff)
	}
}

func text(t *testing.T, f *zip.File) string {
	t.Helper()
	r, err := f.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestANewHandoutReplacesThatOfTheSameLearner(t *testing.T) {
	dir := t.TempDir()
	h := full(t)
	write(t, dir, h)
	other := write(t, dir, bare())
	before, err := os.Stat(filepath.Join(other.Dir, "START.md"))
	if err != nil {
		t.Fatal(err)
	}
	h.Kubeconfig, h.Board, h.Lends, h.Learner.Name = "", nil, false, "Grace"
	w := write(t, dir, h)
	want := contents(t, write(t, t.TempDir(), h).Dir)
	if diff := cmp.Diff(want, contents(t, w.Dir)); diff != "" {
		t.Errorf("the new one is not as in an empty folder (-want +got)\n%s", diff)
	}
	for _, f := range openArchive(t, w.Archive).File {
		if strings.Contains(f.Name, "kubeconfig") || strings.Contains(f.Name, "board.json") {
			t.Errorf("the archive still has %s", f.Name)
		}
	}
	if after, err := os.Stat(filepath.Join(other.Dir, "START.md")); err != nil || !os.SameFile(before, after) {
		t.Errorf("somebody else's handout was written anew, or %v", err)
	}
	onlyHandouts(t, dir, "learner-7", "learner-7.zip", "learner-8", "learner-8.zip")
}

// onlyHandouts looks for what is left over.
func onlyHandouts(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("in the folder of handouts (-want +got)\n%s", diff)
	}
}

func TestWhatIsNoHandoutIsLeftAlone(t *testing.T) {
	for name, prepare := range map[string]func(dir string) error{
		"a folder": func(dir string) error { return os.MkdirAll(filepath.Join(dir, "learner-7", "thesis"), 0o755) },
		"a file":   func(dir string) error { return os.WriteFile(filepath.Join(dir, "learner-7"), []byte("thesis"), 0o644) },
		"an archive": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "learner-7.zip"), []byte("thesis"), 0o644)
		},
		"a link": func(dir string) error {
			if err := os.Mkdir(filepath.Join(dir, "thesis"), 0o755); err != nil {
				return err
			}
			return os.Symlink("thesis", filepath.Join(dir, "learner-7"))
		},
		"an archive that is a link": func(dir string) error {
			return os.Symlink("/etc/passwd", filepath.Join(dir, "learner-7.zip"))
		},
		"somebody else's handout": func(dir string) error {
			write(t, dir, bare())
			return os.Rename(filepath.Join(dir, "learner-8"), filepath.Join(dir, "learner-7"))
		},
		"somebody else's archive": func(dir string) error {
			write(t, dir, bare())
			return os.Rename(filepath.Join(dir, "learner-8.zip"), filepath.Join(dir, "learner-7.zip"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := prepare(dir); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir)
			_, err := handout.Write(t.Context(), dir, full(t))
			if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "is no handout of learner-7") {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(before, contents(t, dir)); diff != "" {
				t.Errorf("it was changed:\n%s", diff)
			}
		})
	}
}

// A process can be killed anywhere in between.
func TestAHandoutThatWasNotFinishedIsMadeAnew(t *testing.T) {
	for name, leave := range map[string]func(dir string) error{
		"half a folder": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, ".learner-7.new", "workspace"), 0o700)
		},
		"half an archive": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".learner-7.zip.new"), []byte("half"), 0o600)
		},
		"between the old one and the new one": func(dir string) error {
			return os.Rename(filepath.Join(dir, "learner-7"), filepath.Join(dir, ".learner-7.old"))
		},
		"before the old one was removed": func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, ".learner-7.old", "workspace"), 0o700)
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			old := contents(t, write(t, dir, full(t)).Dir)
			if err := leave(dir); err != nil {
				t.Fatal(err)
			}
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			h := full(t)
			h.Board, h.Lends = nil, false
			if _, err := handout.Write(ended, dir, h); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			if diff := cmp.Diff(old, contents(t, filepath.Join(dir, "learner-7"))); diff != "" {
				t.Errorf("the old one was changed by one that was cancelled:\n%s", diff)
			}
			onlyHandouts(t, dir, "learner-7", "learner-7.zip")
			if w := write(t, dir, h); maps.Equal(old, contents(t, w.Dir)) {
				t.Error("the old one is still there")
			}
			onlyHandouts(t, dir, "learner-7", "learner-7.zip")
		})
	}
}

func TestWriteRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		change func(t *testing.T, h *handout.Handout)
		want   string
	}{
		"no id": {func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "" }, "cannot name a handout"},
		"an id that leads out": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "../x" },
			`the id "../x" cannot name`,
		},
		"a path": {func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "a/b" }, "cannot name a handout"},
		"an absolute path": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "/etc" },
			"cannot name a handout",
		},
		"a path of Windows": {func(_ *testing.T, h *handout.Handout) { h.Learner.ID = `a\b` }, "cannot name a handout"},
		"a hidden one": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.ID = ".git" },
			"cannot name a handout",
		},
		"an option":  {func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "-rf" }, "cannot name a handout"},
		"upper case": {func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "Ada" }, "cannot name a handout"},
		"a device": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.ID = "com1" },
			"cannot name a handout",
		},
		"a long id": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.ID = strings.Repeat("a", 41) },
			"cannot name a handout",
		},
		"a name of two lines": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.Name = "Ada\n# Grade: A" },
			"cannot be seen",
		},
		"a name that turns the line": {
			func(_ *testing.T, h *handout.Handout) { h.Learner.Name = "Ada\u202e" },
			"cannot be seen",
		},
		"a board of no scheme": {
			func(_ *testing.T, h *handout.Handout) { h.Board.URL = "192.168.1.5:7777" },
			"the board's address",
		},
		"a file as board": {
			func(_ *testing.T, h *handout.Handout) { h.Board.URL = "file:///etc/passwd" },
			"the board's address",
		},
		"the instructor's link": {
			func(_ *testing.T, h *handout.Handout) { h.Board.URL += "/#token=labboard-12345678-" + secret },
			"the board's address",
		},
		"a password": {
			func(_ *testing.T, h *handout.Handout) { h.Board.URL = "https://me:" + secret + "@board" },
			"the board's address",
		},
		"a board with a path":           {func(_ *testing.T, h *handout.Handout) { h.Board.URL += "/x" }, "the board's address"},
		"a board that is not encrypted": {func(_ *testing.T, h *handout.Handout) { h.Board.URL = "http://192.168.1.5:7777" }, "the board's address"},
		"no key":                        {func(_ *testing.T, h *handout.Handout) { h.Key = "" }, "no key"},
		"a course without a digest":     {func(_ *testing.T, h *handout.Handout) { h.Course.SHA256 = "" }, "no SHA-256"},
		"no token":                      {func(_ *testing.T, h *handout.Handout) { h.Board.Token = token.Token{} }, "no token"},
		"a course that is no address": {
			func(_ *testing.T, h *handout.Handout) {
				h.Course.URL += "?token=" + secret
			},
			"https://192.168.1.5:7777/course.tar.gz",
		},
		"two proxies": {
			func(_ *testing.T, h *handout.Handout) { h.Modules = "off" },
			"the address of the Go modules",
		},
		"a proxy's password": {
			func(_ *testing.T, h *handout.Handout) { h.Modules = "http://me:" + secret + "@proxy" },
			"the address of the Go modules",
		},
		"a proxy of two lines": {
			func(_ *testing.T, h *handout.Handout) { h.Modules += "\u0085export X=1" },
			"no line of text",
		},
		"a lender that nobody knows": {func(_ *testing.T, h *handout.Handout) { h.Board = nil }, "cannot borrow"},
		"no workspace":               {func(_ *testing.T, h *handout.Handout) { h.Workspace = nil }, "has no workspace"},
		"a workspace that leads out": {
			func(_ *testing.T, h *handout.Handout) { h.Workspace["../START.md"] = course.File{} },
			"no path inside",
		},
		"an absolute file": {
			func(_ *testing.T, h *handout.Handout) { h.Workspace["/etc/x"] = course.File{} },
			"no path inside",
		},
		"a file of Windows": {
			func(_ *testing.T, h *handout.Handout) { h.Workspace[`a\..\x`] = course.File{} },
			"no path inside",
		},
		"a stream of Windows": {
			func(_ *testing.T, h *handout.Handout) { h.Workspace["a:b"] = course.File{} },
			"no path inside",
		},
		"a link": {func(_ *testing.T, h *handout.Handout) {
			h.Workspace["a"] = course.File{Data: []byte("/etc/passwd"), Mode: fs.ModeSymlink}
		}, "has a link"},
		"no kubeconfig":  {func(_ *testing.T, h *handout.Handout) { h.Kubeconfig += "-none" }, "no such file"},
		"a folder":       {func(t *testing.T, h *handout.Handout) { h.Kubeconfig = t.TempDir() }, "is no kubeconfig"},
		"something else": {kubeconfigOf("token: " + secret + "\n- no: YAML"), "is no kubeconfig"},
		"something of Kubernetes": {
			kubeconfigOf("apiVersion: v1\nkind: Secret\ndata: {a: " + key + "}\n"),
			"is no kubeconfig",
		},
		// The parser's complaint has the word in it.
		"a secret in a wrong place": {kubeconfigOf("apiVersion: v1\nkind: " + secret + "\n"), "is no kubeconfig"},

		"an empty one": {kubeconfigOf(""), "it knows 0 clusters and 0 users"},
		"two clusters": {
			damaged("users:", "- name: work\n  cluster: {server: https://work}\nusers:"),
			"it knows 2 clusters and 1 users",
		},
		"a key in a file":        {damaged("client-key-data", "client-key"), "needs other files"},
		"an authority in a file": {damaged("certificate-authority-data", "certificate-authority"), "needs other files"},
		"a token in a file":      {damaged("client-key-data: "+key, "tokenFile: /token"), "needs other files"},
		"a program": {
			damaged("client-key-data: "+key,
				"exec: {command: cloud, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}"),
			"needs other files or programs",
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h := full(t)
			c.change(t, &h)
			_, err := handout.Write(t.Context(), dir, h)
			if exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
			for _, hidden := range []string{secret, key, "\n"} {
				if strings.Contains(err.Error(), hidden) {
					t.Errorf("the error has %q in it: %v", hidden, err)
				}
			}
			onlyHandouts(t, dir)
		})
	}
}

func kubeconfigOf(text string) func(t *testing.T, h *handout.Handout) {
	return func(t *testing.T, h *handout.Handout) { h.Kubeconfig = kubeconfig(t, text) }
}

// damaged is a kubeconfig that nobody should be given.
func damaged(old, new string) func(t *testing.T, h *handout.Handout) {
	return kubeconfigOf(strings.Replace(goodKubeconfig, old, new, 1))
}

func TestNothingThatIsPrintedShowsASecret(t *testing.T) {
	h := full(t)
	for _, format := range []string{"%v", "%+v", "%s"} {
		if printed := fmt.Sprintf(format+format, h, *h.Board); strings.Contains(printed, secret) {
			t.Errorf("%s prints %s", format, printed)
		}
	}
}

// A name is text, in Markdown too.
func TestAHostileNameStaysText(t *testing.T) {
	h := bare()
	h.Learner.Name = `<img src=x onerror=alert(1)> [me](http://x) *b* ` + "`$(id)`"
	w := write(t, t.TempDir(), h)
	first, _, _ := strings.Cut(read(t, w.Dir, "START.md"), "\n")
	want := `# Welcome, \<img src=x onerror=alert(1)\> \[me\](http\://x) \*b\* ` + "\\`$(id)\\`"
	if first != want {
		t.Errorf("got %s", first)
	}
	for _, script := range []string{"env.sh", "env.ps1"} { // where a name has no business
		if strings.Contains(read(t, w.Dir, script), "alert") {
			t.Errorf("the name is in %s", script)
		}
	}
}

// What is unpacked from an archive is a workspace that the lab takes.
func TestTheWorkspaceOfAHandoutCanBeSolved(t *testing.T) {
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	h := full(t)
	if h.Workspace, err = workspace.Starter(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, f := range openArchive(t, write(t, t.TempDir(), h).Archive).File {
		name := filepath.Join(home, filepath.FromSlash(f.Name))
		if f.Mode().IsDir() {
			err = os.Mkdir(name, f.Mode().Perm())
		} else {
			err = os.WriteFile(name, []byte(text(t, f)), f.Mode().Perm())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(home, "learner-7", "workspace")
	if _, err := workspace.Solve(t.Context(), c, mine, 2); err != nil {
		t.Fatal(err)
	}
	solved, err := course.ReadTree(mine)
	if err != nil {
		t.Fatal(err)
	}
	want, err := c.Render(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range want.Paths() {
		if !bytes.Equal(want[name].Data, solved[name].Data) {
			t.Errorf("%s is not as in the solution", name)
		}
	}
}
