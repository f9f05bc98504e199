//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/pool"
	"github.com/example/operator-lab/labs/harness/registry"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/plain/plaintest"
	"github.com/example/operator-lab/labs/internal/roomclient"
	"github.com/example/operator-lab/labs/internal/suite"
	"github.com/example/operator-lab/labs/internal/trace"
	"github.com/example/operator-lab/labs/internal/verdict"
	"github.com/example/operator-lab/labs/internal/watch"
	"github.com/example/operator-lab/labs/internal/workspace"
)

// The places of the lab command. Those of a check's own process are in labs/harness/env, those of the classroom beside its
// command.
func TestTextFromElsewhereIsPlain(t *testing.T) {
	plaintest.Check(t, plaintest.Places{
		"the error that ends a command": endsCommand,
		"a request of the registry": func(*testing.T) string {
			return requestLine(registry.Request{Method: http.MethodPut, Entry: registry.Entry{Name: plaintest.Hostile}})
		},
		"progress": func(t *testing.T) string {
			shared, _, progress := clitest.New(t)
			shared.Progress(plaintest.Hostile)
			return progress.String()
		},
		"what the doctor found": func(t *testing.T) string {
			shared, out, _ := clitest.New(t)
			shared.ShowFindings([]doctor.Finding{{Name: "engine", Detail: plaintest.Hostile}})
			return out.String()
		},
		"status: what is wrong with a cluster": func(t *testing.T) string {
			shared, _, _ := clitest.New(t)
			return (&app{App: *shared}).stateWord(t.Context(), clusters.Record{Cluster: &clusters.Cluster{Kubeconfig: plaintest.Hostile}})
		},
		"a result: what the compiler says":               build,
		"an outcome: what a check saw":                   outcome(func(c verdict.Check) string { return c.Seen }),
		"an outcome: the evidence":                       outcome(func(c verdict.Check) string { return fmt.Sprint(c.Evidence) }),
		"the suite's log":                                suiteLog,
		"watch: the rule above a check, with file names": written(func(w *bytes.Buffer) { verdict.Rule(w, plaintest.Hostile) }),
		"watch: a note below a check":                    written(func(w *bytes.Buffer) { verdict.Note(w, plaintest.Hostile) }),
		"watch: why a check ended":                       watched,
		"trace: an action": written(func(w *bytes.Buffer) {
			trace.Print(w, time.Time{}, []trace.Action{{Actor: "you", Verb: "changed", Detail: plaintest.Hostile}})
		}),
		"trace: an actor": written(func(w *bytes.Buffer) {
			trace.Print(w, time.Time{}, []trace.Action{{Actor: plaintest.Hostile, Verb: "changed"}})
		}),
		"diff: a file":               diff("config/config.yaml", "spec:\n  a: "+plaintest.Name),
		"diff: the name of a file":   diff("config/"+plaintest.Name, "x"),
		"undo: the reason of a save": savedBecause,
		"the board: what it refuses": boardSays("422 x"),
		"the board: another page":    boardSays("418 x"),
	})
}

func written(write func(*bytes.Buffer)) func(*testing.T) string {
	return func(*testing.T) string {
		var b bytes.Buffer
		write(&b)
		return b.String()
	}
}

// program puts one into PATH that prints a text.
func program(t *testing.T, name, text string) (path string) {
	t.Helper()
	dir := t.TempDir()
	coursetest.Write(t, dir, "text", text)
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\ncat '"+dir+"/text'\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return path
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

// build judges a folder that is no module, and has its name in the complaint.
func build(t *testing.T) string {
	c, err := course.Load(coursetest.New(t))
	if err != nil {
		t.Fatal(err)
	}
	judge := &verdict.Judge{
		Course: c, State: t.TempDir(), Workspace: filepath.Join(t.TempDir(), plaintest.Name),
		Pool: &pool.Pool{}, Tools: verdict.Tools{Suite: "not run"},
	}
	results, err := judge.Check(t.Context(), []int{1})
	if err != nil {
		t.Fatal(err)
	}
	kept, err := verdict.Read(judge.State, judge.Workspace, 1)
	if err != nil {
		t.Fatal(err)
	}
	return results[0].Build.Output + kept.Build.Output
}

// outcome hears that a check has failed.
func outcome(of func(verdict.Check) string) func(*testing.T) string {
	return func(*testing.T) string {
		told := ""
		f := finding.New("other", "this", plaintest.Hostile)
		lab := &course.Lab{Number: 1, Checks: []course.Check{{ID: "one"}, {ID: "two"}}}
		verdict.NewOutcomes([]*course.Lab{lab}, true, false, func(o verdict.Outcome) { told = of(o.Check) }).Hear(suite.Result{
			Check: "one", State: suite.Failed, Finding: f, Evidence: []finding.Evidence{{Title: "Log", Lines: []string{plaintest.Hostile}}},
		})
		return told
	}
}

// suiteLog runs a Ginkgo that says nothing but the text.
func suiteLog(t *testing.T) string {
	artifacts := t.TempDir()
	tools := verdict.Tools{Ginkgo: program(t, "ginkgo", plaintest.Hostile)}
	_, _ = tools.RunSuite(t.Context(), suite.Config{Artifacts: artifacts}) // it leaves no report
	return coursetest.Read(t, artifacts, "suite.log")
}

// watched is told an error by its first check.
func watched(t *testing.T) string {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	screen := &untilTold{stop: stop}
	broken := func(context.Context, int, func(*verdict.Result)) error { return errors.New(plaintest.Hostile) }
	s := &watch.Session{Lab: 1, Labs: 1, Check: broken, Out: screen, Err: screen}
	if err := s.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	return screen.String()
}

// untilTold stops when it is told an error.
type untilTold struct {
	bytes.Buffer
	stop func()
}

func (u *untilTold) Write(data []byte) (int, error) {
	if bytes.HasPrefix(data, []byte("lab:")) {
		u.stop()
	}
	return u.Buffer.Write(data)
}

func diff(path, text string) func(*testing.T) string {
	return func(t *testing.T) string {
		c, err := course.Load(coursetest.New(t))
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		coursetest.Write(t, dir, path, text)
		diff, err := c.Diff(t.Context(), dir, 2)
		if err != nil {
			t.Fatal(err)
		}
		return diff
	}
}

// savedBecause lists a save with a reason that somebody else wrote.
func savedBecause(t *testing.T) string {
	a, out := appInSmallCourse(t)
	made(t, a)
	c, err := a.Course()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := workspace.Bring(t.Context(), c, a.workspace, 1, "before solve 1"); err != nil {
		t.Fatal(err)
	}
	saves, err := filepath.Glob(filepath.Join(a.State, "saves", "*", "1-before-solve-1"))
	if err != nil || len(saves) != 1 {
		t.Fatal(saves, err)
	}
	reason := string(bytes.ReplaceAll([]byte(plaintest.Hostile), []byte{0}, nil)) // no file name holds a zero
	if err := os.Rename(saves[0], filepath.Join(filepath.Dir(saves[0]), "1-"+reason)); err != nil {
		t.Fatal(err)
	}
	if err := a.listSaves(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func made(t *testing.T, a *app) {
	t.Helper()
	c, err := a.Course()
	if err == nil {
		_, err = workspace.Ensure(t.Context(), c, a.workspace)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// boardSays is what a learner is told of a board that answers everything with a status and a hostile text.
func boardSays(status string) func(*testing.T) string {
	return func(t *testing.T) string {
		s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 %s\r\nConnection: close\r\n\r\n%s", status, plaintest.Hostile)
		}))
		defer s.Close()
		state := t.TempDir()
		data, err := json.Marshal(roomclient.Room{Address: s.Listener.Addr().String(), Key: roomclient.KeyOf(s.Certificate()), Name: "Ana"})
		if err == nil {
			err = os.WriteFile(filepath.Join(state, roomclient.ConfigFile), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err = roomclient.Report(t.Context(), state, []*verdict.Result{{Run: "r1"}}); err == nil {
			t.Fatal("the board's answer is no error")
		}
		shared, _, progress := clitest.New(t)
		shared.Progress(err.Error())
		return progress.String()
	}
}
