package proof

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestForeignOperatorPasses judges an operator that keeps the contract card and shares nothing else with
// ours: another layout and file names, an older controller-runtime, a finalizer, create-or-update, status
// patches, no flags, other labels, reasons, messages and log lines, and a port that memcached learns from
// its environment. Whatever a check expects beyond the card fails here.
func TestForeignOperatorPasses(t *testing.T) {
	t.Parallel()
	c := load(t)
	workspace, err := filepath.Abs("testdata/foreign-operator")
	if err != nil {
		t.Fatal(err)
	}
	compileDependencies(t, workspace)
	for _, r := range judgeFolder(t, c, workspace, []int{4, 5}, false) {
		requirePass(t, r)
	}
}

// compileDependencies fills the build cache: nobody else needs these versions, and the limit on a
// learner's compilation is not what is judged here.
func compileDependencies(t *testing.T, module string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", os.DevNull, "./...")
	cmd.Dir = module
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("compile %s: %v\n%s", module, err, out)
	}
}
