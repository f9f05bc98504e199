package doctor

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

func TestTemporaryFolderWithNoexec(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("not root: nothing can be mounted")
	}
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOEXEC, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("TMPDIR", dir)
	if f := TemporaryFolder(); f.Severity != Error || !strings.Contains(f.Detail, dir) || !strings.Contains(f.Fix, "TMPDIR") {
		t.Errorf("got %+v", f)
	}
}
