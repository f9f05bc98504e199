//go:build unix

package main

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/plain/plaintest"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
)

func TestTextFromElsewhereIsPlain(t *testing.T) {
	printed := func(print func(l learner)) func(*testing.T) string {
		return func(t *testing.T) string {
			l := newLearner(t)
			print(l)
			return l.out.String()
		}
	}
	plaintest.Check(t, plaintest.Places{
		"the error that ends a command": endsCommand,
		"a request of the registry": func(*testing.T) string {
			return requestLine(registry.Request{Method: http.MethodPut, Entry: registry.Entry{Name: plaintest.Hostile}})
		},
		"progress":                       printed(func(l learner) { l.Progress(plaintest.Hostile) }),
		"watch: the rule above a check":  printed(func(l learner) { verdict.Rule(l.out, plaintest.Hostile) }),
		"trace: the actor of an action":  printed(func(l learner) { trace.Print(l.out, time.Time{}, []trace.Action{{Actor: plaintest.Hostile}}) }),
		"trace: the detail of an action": printed(func(l learner) { trace.Print(l.out, time.Time{}, []trace.Action{{Detail: plaintest.Hostile}}) }),
		"diff: a line of a file": func(t *testing.T) string {
			l := newLearner(t)
			coursetest.Write(t, l.workspace, "config/config.yaml", plaintest.Name)
			l.passed("2")
			text, _ := l.run("diff 2")
			return text
		},
	})
}

// endsCommand gives a flag a value that its error names.
func endsCommand(t *testing.T) string {
	t.Setenv("PATH", os.Getenv("PATH")) // the command changes it
	file, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	stderr, args := os.Stderr, os.Args
	t.Cleanup(func() { os.Stderr, os.Args = stderr, args })
	os.Stderr, os.Args = file, []string{"lab", "status", "--cluster=" + plaintest.Hostile}
	cli.Main(func(shared *cli.App) *cobra.Command { return newRootCommand(&app{App: *shared}) })
	data, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
