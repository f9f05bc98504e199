//go:build unix

package probe_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/example/operator-lab/labs/harness/probe"
	"github.com/example/operator-lab/labs/internal/finding"
)

// The folder of the report belongs to the learner's program. Who reads it may be root.
func TestNothingButAPlainFileIsRead(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "report")
	report, link, pipe := filepath.Join(dir, "report"), filepath.Join(dir, "link"), filepath.Join(dir, "pipe")
	err := errors.Join(os.WriteFile(report, []byte("{}"), 0o600), os.WriteFile(elsewhere, []byte("{}"), 0o600), os.Symlink(elsewhere, link),
		syscall.Mkfifo(pipe, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := probe.Read(report, nil, ""); err != nil {
		t.Errorf("a report: %v", err)
	}
	for _, file := range []string{link, pipe} {
		_, err := probe.Read(file, nil, "")
		if f, ok := errors.AsType[*finding.Finding](err); !ok || f.Cause != probe.CauseNoAnswer {
			t.Errorf("%s: %v", file, err)
		}
	}
}
