package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestProgramsCanBeRunAmongTemporaryFiles(t *testing.T) {
	for name, prepare := range map[string]func(t *testing.T, dir string){
		"no folder": func(*testing.T, string) {},
		"mounted with noexec": func(t *testing.T, dir string) {
			if os.Geteuid() != 0 {
				t.Skip("not root: nothing can be mounted")
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_NOEXEC, ""); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := syscall.Unmount(dir, 0); err != nil {
					t.Error(err)
				}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "tmp")
			prepare(t, dir)
			t.Setenv("TMPDIR", dir)
			found := Disks(t.Context(), Options{})
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Name == temporaryFiles && !f.OK })
			if i < 0 || found[i].Severity != Stops || !strings.Contains(found[i].Detail, dir) || !strings.Contains(found[i].Fix, "TMPDIR") {
				t.Errorf("got %+v", found)
			}
		})
	}
	if f := TemporaryFiles(); !f.OK {
		t.Errorf("on this machine: %s", f.Detail)
	}
}
