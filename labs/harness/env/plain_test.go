package env

import (
	"fmt"
	"os"
	"testing"

	"github.com/example/operator-lab/labs/harness/diagnostics"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain/plaintest"
)

// These are the places where the process of a check shows text from the learner's program.
func TestTextFromElsewhereIsPlain(t *testing.T) {
	plaintest.Check(t, plaintest.Places{
		"the manager's log": func(t *testing.T) string {
			log := logOf(t)
			fmt.Fprintln(log, plaintest.Hostile)
			log.Close()
			data, err := os.ReadFile(log.Name())
			if err != nil {
				t.Fatal(err)
			}
			return string(data)
		},
		"the end of the manager's log": func(t *testing.T) string { return logged(t).String() },
		"lines of the manager's log":   func(t *testing.T) string { return fmt.Sprint(logged(t).Lines("mark")) },
		"evidence of a failed check": func(*testing.T) string {
			return fmt.Sprint((&diagnostics.Snapshot{Log: "error: " + plaintest.Hostile}).Explain(&finding.Finding{}))
		},
		"a shortened line of a log": func(*testing.T) string { return diagnostics.Shorten(plaintest.Hostile) },
		"the value of a panic": func(*testing.T) string {
			return diagnostics.FindPanic("panic: "+plaintest.Hostile+"\n\ngoroutine 1 [running]:\n", "", nil)
		},
		"the value of a recovered panic": func(*testing.T) string {
			return diagnostics.FindPanic(fmt.Sprintf(`Observed a panic {"panic": "%s"}`, plaintest.Name), "", nil)
		},
	})
}

func logged(t *testing.T) logFile {
	log := logOf(t)
	fmt.Fprintln(log, plaintest.Hostile)
	return log
}
