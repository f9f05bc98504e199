//go:build !windows

package workspace_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// TestARepositoryStartsNoProgram has a workspace from elsewhere whose repository says that a remote has the objects which it
// lacks, and which program asks that remote.
func TestARepositoryStartsNoProgram(t *testing.T) {
	for name, settings := range map[string][]string{
		"ssh":        {"remote.origin.url", "ssh://x/y", "core.sshCommand", "touch %; false"},
		"ext":        {"remote.origin.url", "ext::touch %", "protocol.ext.allow", "always"},
		"uploadpack": {"remote.origin.url", "/nowhere", "remote.origin.uploadpack", "touch %; false"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newWorkspace(t)
			ran := filepath.Join(t.TempDir(), "ran")
			settings = append(settings, "core.repositoryformatversion", "1", "extensions.partialClone", "origin", "remote.origin.promisor", "true")
			for i := 0; i < len(settings); i += 2 {
				value := strings.ReplaceAll(settings[i+1], "%", ran)
				config := filepath.Join(f.dir, ".git", "config")
				if out, err := exec.CommandContext(t.Context(), "git", "config", "-f", config, settings[i], value).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			f.write(".git/refs/lab/saves/20260101T000000.000000000Z", strings.Repeat("1", 40)+"\n") // which no object has
			_, _ = workspace.Saves(t.Context(), f.dir)
			_, _ = workspace.Restore(t.Context(), f.dir, "")
			_, _ = workspace.Reset(t.Context(), f.course, f.dir, 2)
			if _, err := os.Stat(ran); err == nil {
				t.Error("it ran")
			}
		})
	}
}

// TestALinkAsLockIsRefused has a workspace from elsewhere with a link where lab locks a file, which would be made.
func TestALinkAsLockIsRefused(t *testing.T) {
	f := newWorkspace(t)
	elsewhere := filepath.Join(t.TempDir(), "nologin")
	f.link(elsewhere, ".git/lab/lock")
	if _, err := workspace.Reset(t.Context(), f.course, f.dir, 2); exit.Code(err) != exit.UsageError {
		t.Errorf("reset gives %v", err)
	}
	if _, err := os.Lstat(elsewhere); err == nil {
		t.Error("it was made")
	}
}
