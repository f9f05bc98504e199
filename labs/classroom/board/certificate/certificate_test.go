package certificate_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/classroom/board/certificate"
)

// A handout names the key, so a server that starts again must have the same.
func TestTheKeyStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "board")
	_, first, err := certificate.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	_, again, err := certificate.Load(dir)
	if err != nil || again != first || !strings.HasPrefix(first, "sha256//") {
		t.Errorf("%q, then %q, %v", first, again, err)
	}
	if _, other, err := certificate.Load(t.TempDir()); err != nil || other == first {
		t.Errorf("two rooms have the key %q, %v", other, err)
	}
	if info, err := os.Stat(filepath.Join(dir, certificate.FileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info, err)
	}
}

func TestADamagedCertificateIsNotReplaced(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, certificate.FileName)
	if err := os.WriteFile(file, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := certificate.Load(dir); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("%v does not name %s", err, file)
	}
	if data, _ := os.ReadFile(file); string(data) != "damaged" {
		t.Error("it was written over")
	}
}

// A room's server and its handouts may begin at the same time.
func TestTwoProcessesMakeOneKey(t *testing.T) {
	dir := t.TempDir()
	keys := make(chan string)
	for range 8 {
		go func() {
			_, key, err := certificate.Load(dir)
			if err != nil {
				t.Error(err)
			}
			keys <- key
		}()
	}
	first := <-keys
	for range 7 {
		if key := <-keys; key != first {
			t.Errorf("one has the key %s, another one %s", first, key)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".room-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
