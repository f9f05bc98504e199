package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// takeGo has this command, and all that it starts, use the Go that the checkout's go.mod asks for. A Go that is older
// fetches that one by itself (https://go.dev/doc/toolchain), as it did to build this command, but only where a go.mod
// asks; learners' code is compiled with what is there, and would be called wrong for the Go that it met. Where Go does not
// answer nothing changes: the doctor, and whatever needs Go, say so.
func takeGo(ctx context.Context, root string) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return
	}
	bin := filepath.Join(strings.TrimSpace(string(out)), "bin")
	if _, err := exec.LookPath(filepath.Join(bin, "go")); err != nil || !filepath.IsAbs(bin) {
		return // a distribution that keeps it elsewhere
	}
	_ = os.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
}
