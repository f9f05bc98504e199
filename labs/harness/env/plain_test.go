package env

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain/plaintest"
)

// The places of a check's own process.
func TestTextFromElsewhereIsPlain(t *testing.T) {
	plaintest.Check(t, plaintest.Places{
		"the manager's log": func(t *testing.T) string {
			path := filepath.Join(t.TempDir(), "manager.log")
			fmt.Fprintln(newTail(path), plaintest.Hostile)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		"the end of the manager's log": func(*testing.T) string { return logged().String() },
		"lines of the manager's log":   func(*testing.T) string { return fmt.Sprint(logged().Lines("mark")) },
		"evidence of a failed check": func(*testing.T) string {
			return fmt.Sprint((&diagnostics.Snapshot{Log: "error: " + plaintest.Hostile}).Explain(&finding.Finding{}))
		},
		"artifacts of a failed check": func(t *testing.T) string {
			dir := t.TempDir()
			(&diagnostics.Snapshot{Log: plaintest.Hostile}).Keep(dir)
			data, err := os.ReadFile(filepath.Join(dir, "manager.log"))
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		"a shortened line of a log": func(*testing.T) string { return diagnostics.Shorten(plaintest.Hostile) },
		"the value of a panic": func(*testing.T) string {
			return diagnostics.FindPanic("panic: "+plaintest.Hostile+"\n\ngoroutine 1 [running]:\n", "", diagnostics.LogFilter{}).Message
		},
		"the value of a recovered panic": func(*testing.T) string {
			return diagnostics.FindPanic(fmt.Sprintf(`Observed a panic {"panic": "%s"}`, plaintest.Name), "", diagnostics.LogFilter{}).Message
		},
	})
}

// logged is a log that could not be kept on disk.
func logged() *tail {
	t := newTail("")
	fmt.Fprintln(t, plaintest.Hostile)
	return t
}
