package nodeimage

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTarHasFilesOfOursAndOfTheHost(t *testing.T) {
	host := filepath.Join(t.TempDir(), "built")
	if err := os.WriteFile(host, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	archive := tarOf(entry{name: "etc/a", mode: 0o644, data: []byte("text")}, program("usr/bin/b", host))
	defer archive.Close()
	r := tar.NewReader(archive)
	for _, want := range []struct {
		name, contents string
		mode           int64
	}{{"etc/a", "text", 0o644}, {"usr/bin/b", "a program", 0o755}} {
		header, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil || header.Name != want.name || header.Mode != want.mode || string(data) != want.contents {
			t.Errorf("%s (mode %o) holds %q, %v; want %+v", header.Name, header.Mode, data, err, want)
		}
	}
	if _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last file: %v", err)
	}
}

func TestTarWithoutItsFileIsAnError(t *testing.T) {
	archive := tarOf(program("usr/bin/b", filepath.Join(t.TempDir(), "absent")))
	defer archive.Close()
	if _, err := io.ReadAll(archive); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v", err)
	}
}

func TestAnotherMemcachedIsNotCalledTheOperand(t *testing.T) {
	e := newFakeEngine(t)
	e.write("answer-run", 0o644, "echo 1.5.0")
	_, err := engine(e.name()).operandImage(t.Context(), "sha256:1", t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "memcached is 1.5.0") {
		t.Errorf("error %v", err)
	}
}
