package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/demo"
)

// The questions are put into the workspace once, and what was written there stays.
func TestLab0AsksBeforeCluster(t *testing.T) {
	l := newLearner(t)
	l.Root, l.workspace = filepath.Join("..", "..", ".."), t.TempDir()
	quiz, err := demo.ReadQuiz(filepath.Join(l.Root, course.LabZero, "quiz.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.predictions(quiz); exit.Code(err) != exit.UsageError {
		t.Errorf("a folder that is no workspace: %v", err)
	}
	coursetest.Write(t, l.workspace, "go.mod", "")
	isOpen := func(want ...string) {
		t.Helper()
		l.out.Reset()
		if _, err := l.predictions(quiz); !errors.Is(err, exit.ErrFail) {
			t.Error(err)
		}
		requireText(t, "check 0", l.out.String(), want...)
	}
	if answers, err := l.predictions(quiz); answers != nil || err != nil {
		t.Errorf("the first time: %v, %v", answers, err)
	}
	requireText(t, "check 0", l.out.String(), "questions are in "+l.answersPath(), "Answer makes-the-replicaset,")
	isOpen("Answer makes-the-replicaset, makes-the-pods,")
	questions := coursetest.Read(t, l.workspace, "answers.yaml")
	coursetest.Write(t, l.workspace, "answers.yaml", strings.Replace(questions, "makes-the-replicaset:", "makes-the-replicaset: you", 1))
	isOpen("Answer makes-the-pods,", "!makes-the-replicaset")
	coursetest.Write(t, l.workspace, "answers.yaml", strings.ReplaceAll(questions, ":    ", ":kubelet    "))
	if answers, err := l.predictions(quiz); err != nil || len(answers) != 8 || answers["makes-the-pods"] != "kubelet" {
		t.Errorf("%v, %v", answers, err)
	}
	coursetest.Write(t, l.workspace, "answers.yaml", "makes-the-tea: you")
	if _, err := l.predictions(quiz); exit.Code(err) != exit.UsageError {
		t.Errorf("an answer to no question: %v", err)
	}
}

// A port that is taken is bad input, and Ctrl-C is the end of a registry.
func TestRegistryEndsWithCtrlC(t *testing.T) {
	l := newLearner(t)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := cli.Execute(interrupted, newRootCommand(l.app), []string{"registry", "--port", "0"}); err != nil {
		t.Error(err)
	}
	requireText(t, "registry", l.out.String(), "REGISTRY_URL=http://127.0.0.1:")
	for _, port := range []string{"-1", "70000", "http"} {
		l.isRefused("registry --port="+port, "port")
	}
}
