package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// engines puts programs with these scripts, and nothing else, on PATH.
func engines(t *testing.T, scripts map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range scripts {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
}

const (
	answers  = "echo 1.2.3"
	noDaemon = "echo 'Cannot connect to the daemon' >&2; exit 1"
)

func TestDetectEngineTakesTheFirstThatAnswers(t *testing.T) {
	engines(t, map[string]string{"docker": noDaemon, "podman": answers, "nerdctl": answers})
	engine, err := DetectEngine(t.Context())
	if engine != "podman" || err != nil {
		t.Errorf("DetectEngine() = %q, %v, want podman: docker has no daemon", engine, err)
	}
}

func TestDetectEngineSaysWhyThereIsNone(t *testing.T) {
	cases := map[string]struct {
		scripts map[string]string
		want    []string
	}{
		"none installed": {nil, []string{"docker", "podman", "nerdctl", "installed"}},
		"no daemon":      {map[string]string{"docker": noDaemon}, []string{"docker", "Cannot connect to the daemon"}},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			engines(t, test.scripts)
			_, err := DetectEngine(t.Context())
			problem, ok := errors.AsType[*Problem](err)
			if !ok || problem.Fix == "" {
				t.Fatalf("DetectEngine() error = %v, want a *Problem with a command that fixes it", err)
			}
			for _, word := range test.want {
				if !strings.Contains(err.Error(), word) {
					t.Errorf("error %q does not say %q", err, word)
				}
			}
		})
	}
}

func TestCreateNeverPulls(t *testing.T) {
	pulled := filepath.Join(t.TempDir(), "pulled")
	engines(t, map[string]string{"docker": `
case "$1" in
version) echo 1.2.3 ;;
image) echo "No such image" >&2; exit 1 ;;
*) echo "$*" >` + pulled + ` ;;
esac`})
	kind, err := NewKind(t.TempDir(), WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = kind.Create(t.Context(), "lab-test", Spec{NodeImage: "example/node:v1"})
	problem, ok := errors.AsType[*Problem](err)
	if !ok || !strings.Contains(problem.What, "example/node:v1") || !strings.Contains(problem.Fix, "node-image") {
		t.Errorf("Create() error = %v, want a *Problem that names the image and make node-image", err)
	}
	if args, err := os.ReadFile(pulled); err == nil {
		t.Errorf("docker %s was called", args)
	}
}

func TestAnEngineThatDoesNotAnswerIsAProblem(t *testing.T) {
	engines(t, map[string]string{"docker": noDaemon})
	kind, err := NewKind(t.TempDir(), WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"Create": func() error { _, err := kind.Create(t.Context(), "lab-test", Spec{}); return err },
		"List":   func() error { _, err := kind.List(t.Context()); return err },
		"Nodes":  func() error { _, err := kind.Nodes(t.Context(), "lab-test"); return err },
	}
	for name, call := range calls {
		if _, ok := errors.AsType[*Problem](call()); !ok {
			t.Errorf("%s() error = %v, want a *Problem", name, call())
		}
	}
}

func TestUnknownEngineIsNamed(t *testing.T) {
	if _, err := NewKind(t.TempDir(), WithEngine("moon")); err == nil || !strings.Contains(err.Error(), "moon") {
		t.Errorf("NewKind() error = %v, want one that names the engine", err)
	}
}

func TestIdentityTellsEnginesApart(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	docker, err := NewKind(t.TempDir(), WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	podman, err := NewKind(t.TempDir(), WithEngine("podman"))
	if err != nil {
		t.Fatal(err)
	}
	first := docker.Identity()
	t.Setenv("DOCKER_HOST", "unix:///run/second.sock")
	second := docker.Identity()
	if first == second || first == podman.Identity() {
		t.Errorf("identities %q, %q, %q are not all different", first, second, podman.Identity())
	}
}

func TestProblemSaysWhatAndHowToFixIt(t *testing.T) {
	cause := errors.New("no answer")
	var err error = &Problem{What: "docker is down", Fix: "make setup", Err: cause}
	if got, want := err.Error(), "docker is down: no answer (fix: make setup)"; got != want {
		t.Errorf("Error() = %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not in the chain")
	}
}
