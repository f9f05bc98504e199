package verdict

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNoFileOfThisMachineIsLinkedIn has a package hold an "object" that is a script for the linker of C. Where there is
// one, it would make any file that lab can read a part of the program, which runs as somebody who cannot.
func TestNoFileOfThisMachineIsLinkedIn(t *testing.T) {
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skip("there is no linker of C")
	}
	secret := filepath.Join(t.TempDir(), "token")
	writeFiles(t, filepath.Dir(secret), map[string]string{"token": "ghp_1234567890abcdef\n"})
	c := newCompilation(t, newProxy(t), hello)
	writeFiles(t, c.workspace, map[string]string{
		"cmd/x.syso": fmt.Sprintf("TARGET(binary)\nINPUT(%s)\nTARGET(elf64-x86-64)\n", secret),
	})
	build, err := c.judge(t.Context())
	if err != nil || build == nil {
		t.Errorf("the build gives %+v, %v, want a complaint", build, err)
	}
	if data, err := os.ReadFile(c.out); err == nil && bytes.Contains(data, []byte("ghp_1234567890abcdef")) {
		t.Error("the program holds the secret")
	}
}
