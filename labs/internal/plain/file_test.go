package plain_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/plain"
)

func TestReadFileReadsPlainFilesOnly(t *testing.T) {
	dir := t.TempDir()
	name := func(base string) string { return filepath.Join(dir, base) }
	err := errors.Join(os.WriteFile(name("file"), []byte("12345"), 0o600),
		os.Symlink("file", name("link")), os.Symlink(os.DevNull, name("device")), os.Mkdir(name("folder"), 0o700))
	if err != nil {
		t.Fatal(err)
	}
	for base, says := range map[string]string{"file": "", "link": "", "device": "no plain file", "folder": "no plain file"} {
		data, err := plain.ReadFile(name(base))
		if says == "" && (err != nil || string(data) != "12345") || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%s: %q, %v", base, data, err)
		}
	}
	if _, err := plain.ReadFile(name("missing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
