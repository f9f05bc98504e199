package sandbox

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/process"
)

// contents are those of the regular files in dir.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		files[rel] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestAnArchiveHasFilesAndFoldersAndNoLinks(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	err := errors.Join(
		os.MkdirAll(filepath.Join(from, "a", "b"), 0o755),
		os.WriteFile(filepath.Join(from, "a", "b", "program"), []byte("run"), 0o755),
		os.WriteFile(filepath.Join(from, "text"), []byte("new"), 0o600),
		os.WriteFile(filepath.Join(to, "text"), []byte("old and longer"), 0o600),
		os.Symlink("/etc/passwd", filepath.Join(from, "link")),
	)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pack(&b, "head", written(from)...); err != nil {
		t.Fatal(err)
	}
	head := ""
	p, err := unpack(&b, &head)
	if err == nil {
		err = p.into(100, written(to)...)
	}
	if err != nil || head != "head" {
		t.Fatalf("%q, %v", head, err)
	}
	if diff := cmp.Diff(map[string]string{"a/b/program": "run", "text": "new"}, contents(t, to)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(filepath.Join(to, "a", "b", "program")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("it cannot be run any more: %v, %v", info, err)
	}
}

func TestAForgedArchiveChangesNothingElse(t *testing.T) {
	for name, forged := range map[string][]tar.Header{
		"a path with dots":     {{Name: "files/../../outside", Typeflag: tar.TypeReg}},
		"an absolute path":     {{Name: "/tmp/outside", Typeflag: tar.TypeReg}},
		"another place":        {{Name: "outside", Typeflag: tar.TypeReg}},
		"a link":               {{Name: "files/link", Typeflag: tar.TypeSymlink, Linkname: "../outside"}},
		"a hard link":          {{Name: "files/link", Typeflag: tar.TypeLink, Linkname: "../outside"}},
		"a device":             {{Name: "files/null", Typeflag: tar.TypeChar}},
		"a way through a link": {{Name: "files/door/outside", Typeflag: tar.TypeReg}},
	} {
		t.Run(name, func(t *testing.T) {
			around := t.TempDir()
			dir := filepath.Join(around, "dir")
			if err := errors.Join(os.Mkdir(dir, 0o755), os.Symlink("..", filepath.Join(dir, "door"))); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			w := tar.NewWriter(&b)
			head := tar.Header{Name: headName, Size: 2}
			for _, h := range append([]tar.Header{head}, forged...) {
				if err := w.WriteHeader(&h); err != nil {
					t.Fatal(err)
				}
				if h.Name == headName {
					_, _ = w.Write([]byte("{}"))
				}
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			p, err := unpack(&b, &struct{}{})
			if err == nil {
				err = p.into(100, written(dir)...)
			}
			if err == nil {
				t.Error("it is taken")
			}
			entries, err := os.ReadDir(around)
			if err != nil || len(entries) != 1 {
				t.Errorf("there is %v beside the folder, %v", entries, err)
			}
		})
	}
}

func TestMoreThanIsWantedIsNotTaken(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(from, "file"), make([]byte, 101), 0o600); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := pack(&b, nil, written(from)...); err != nil {
		t.Fatal(err)
	}
	p, err := unpack(&b, &struct{}{})
	if err == nil {
		err = p.into(100, written(to)...)
	}
	if !errors.Is(err, errTooMuch) || len(contents(t, to)) != 0 {
		t.Errorf("%v, and there is %v", err, contents(t, to))
	}
}

// Whoever takes one of these away has to say so here, and in docs/design.md.
func TestAContainerIsGivenNothingThatItDoesNotNeed(t *testing.T) {
	args, err := Container{Owner: "me", Runtime: "runsc"}.engineArgs(process.Job{Args: []string{"/x/manager"}, Writes: "/home/x"}, programLimits, []mount{{"/x/manager", "/x/manager"}})
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(args, " ") + " "
	for _, wanted := range []string{
		"--network none", "--ipc none", "--cap-drop ALL", "--security-opt no-new-privileges", "--user 65534:65534", "--read-only",
		"--memory 1610612736 --memory-swap 1610612736", "--pids-limit 400", "--log-driver none", "--pull never", "--rm", "--runtime runsc",
		"type=tmpfs,target=/home/x,tmpfs-size=67108864", "type=bind,source=/x/manager,target=/x/manager,readonly",
	} {
		if !strings.Contains(all, wanted+" ") && !strings.Contains(all, wanted+",") {
			t.Errorf("no %s in %s", wanted, all)
		}
	}
	for _, unwanted := range []string{"--privileged", "--volume", "--device", "--publish", "--env", "unconfined", "--pid", "--cap-add"} {
		if strings.Contains(all, unwanted+" ") {
			t.Errorf("%s in %s", unwanted, all)
		}
	}
	if strings.Count(all, "type=bind") != strings.Count(all, ",readonly") {
		t.Errorf("something of this machine can be written: %s", all)
	}
}
