//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/demo"
)

// The questions are put into the workspace once, and what was written there stays.
func TestLab0AsksBeforeItMakesACluster(t *testing.T) {
	shared, out, _ := clitest.New(t)
	shared.Root = filepath.Join("..", "..", "..")
	a := &app{App: *shared, workspace: t.TempDir()}
	quiz, err := demo.ReadQuiz(filepath.Join(a.Root, lessonZero, "quiz.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.predictions(quiz); exit.Code(err) != exit.UsageError {
		t.Errorf("a folder that is no workspace: %v", err)
	}
	if err := os.WriteFile(filepath.Join(a.workspace, "go.mod"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := a.predictions(quiz); !errors.Is(err, exit.ErrFail) || !strings.Contains(out.String(), "eight questions are in "+a.answersPath()) {
		t.Errorf("%v, %s", err, out)
	}
	out.Reset()
	if _, err := a.predictions(quiz); !errors.Is(err, exit.ErrFail) || !strings.Contains(out.String(), "no answer yet for makes-the-replicaset, makes-the-pods,") {
		t.Errorf("%v, %s", err, out)
	}
	questions, err := os.ReadFile(a.answersPath())
	if err != nil {
		t.Fatal(err)
	}
	some := bytes.Replace(questions, []byte("makes-the-replicaset:"), []byte("makes-the-replicaset: you"), 1)
	if err := os.WriteFile(a.answersPath(), some, 0o600); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if _, err := a.predictions(quiz); !errors.Is(err, exit.ErrFail) || strings.Contains(out.String(), "makes-the-replicaset") {
		t.Errorf("%v, %s", err, out)
	}
	all := bytes.ReplaceAll(questions, []byte(":    "), []byte(": kubelet    "))
	if err := os.WriteFile(a.answersPath(), all, 0o600); err != nil {
		t.Fatal(err)
	}
	answers, err := a.predictions(quiz)
	if want := (demo.Answers{"makes-the-pods": "kubelet"}); err != nil || len(answers) != 8 || answers["makes-the-pods"] != want["makes-the-pods"] {
		t.Errorf("%v, %v", answers, err)
	}
}

// A port that is taken is bad input, and Ctrl-C is the end of a registry.
func TestARegistryToTryThingsWith(t *testing.T) {
	shared, out, _ := clitest.New(t)
	run := func(args ...string) error {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		return cli.Execute(ctx, newRootCommand(&app{App: *shared}), append([]string{"registry"}, args...))
	}
	if err := run("--port", "0"); err != nil || !strings.Contains(out.String(), "REGISTRY_URL=http://127.0.0.1:") {
		t.Errorf("%v, %s", err, out)
	}
	for _, port := range []string{"-1", "70000", "http"} {
		if err := run("--port", port); exit.Code(err) != exit.UsageError {
			t.Errorf("--port %s: %v", port, err)
		}
	}
}
