package nodeimage

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALayersFoldersComeFirstAndItsBytesAreAlwaysTheSame(t *testing.T) {
	write := func(entries ...entry) []byte {
		var b bytes.Buffer
		if err := writeTar(&b, entries); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	a, b := text("usr/bin/a", 0o755, []byte("a")), symlink("etc/b", "../usr/bin/a")
	layer := write(a, b)
	if !bytes.Equal(layer, write(b, a)) {
		t.Error("the order of files changes the layer")
	}
	var names []string
	for r := tar.NewReader(bytes.NewReader(layer)); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, header.Name)
	}
	if diff := cmp.Diff([]string{"etc/", "etc/b", "usr/", "usr/bin/", "usr/bin/a"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestALayerKnowsItsSize(t *testing.T) {
	l, err := entryLayer([]entry{text("a", 0o644, []byte("hello"))})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Compressed()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil || int64(len(data)) != l.size {
		t.Errorf("read %d bytes (%v), the layer promised %d", len(data), err, l.size)
	}
}

// testRootfs is a root file system with these entries.
func testRootfs(t *testing.T, entries ...entry) *rootfs {
	t.Helper()
	name := filepath.Join(t.TempDir(), "rootfs.tar")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeTar(file, entries); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	system, err := openRootfs(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = system.Close() })
	return system
}

func TestRootfsFollowsLinksOfFilesAndFolders(t *testing.T) {
	system := testRootfs(t,
		text("usr/lib/x/libc.so.6", 0o755, []byte("libc")), text("usr/bin/real", 0o755, []byte("real")),
		symlink("lib", "usr/lib"), symlink("usr/bin/name", "/etc/alternatives/name"),
		symlink("etc/alternatives/name", "../../usr/bin/real"), symlink("usr/bin/loop", "loop"))
	for name, want := range map[string]string{"lib/x/libc.so.6": "libc", "usr/bin/name": "real"} {
		e, err := system.entry(name)
		if err != nil {
			t.Errorf("entry(%s): %v", name, err)
			continue
		}
		r, err := e.open()
		if err != nil {
			t.Fatal(err)
		}
		if data, err := io.ReadAll(r); err != nil || string(data) != want {
			t.Errorf("entry(%s) holds %q (%v), want %q", name, data, err, want)
		}
	}
	for _, name := range []string{"usr/bin/loop", "usr/bin/absent"} {
		if _, err := system.entry(name); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("entry(%s): got error %v, want that it does not exist", name, err)
		}
	}
}

func TestTheOperandsTagIsThatOfItsPackage(t *testing.T) {
	system := testRootfs(t, text("var/lib/dpkg/status", 0o644, []byte(
		"Package: libevent\nVersion: 9-9\n\nPackage: memcached\nStatus: installed\nVersion: 1.5.0-1+deb12u1\n")))
	if got, err := system.packageVersion("memcached"); got != "1.5.0" || err != nil {
		t.Errorf("packageVersion = %q, %v", got, err)
	}
	if _, err := operandImage(system); err == nil {
		t.Errorf("memcached 1.5.0 was called %s", Operand)
	}
}
