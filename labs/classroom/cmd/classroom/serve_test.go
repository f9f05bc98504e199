package main

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/classroom/modules/modulestest"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestClassroomServerRefusesWhatItDoesNotUnderstand(t *testing.T) {
	for _, line := range []string{
		"", "modules now", "serve now", "serve --listen 0.0.0.0:0",
		"serve --address some.host", "serve --expires 0s", "serve --from dir",
		"doctor", "doctor now", "doctor --learners 0",
		"doctor --learners 2 --listen 0.0.0.0:7777", "doctor --learners 2 --address some.host",
		"serve", // this one is no git checkout
	} {
		path := os.Getenv("PATH")
		a, _, _ := boardApp(t)
		t.Setenv("PATH", path)
		coursetest.Write(t, a.Root, "go.mod", "module example.com/lab\n\ngo 1.26.0\n")
		args := append([]string{"--cluster", "kind"}, strings.Fields(line)...)
		if err := cli.Execute(t.Context(), newRootCommand(a), args); exit.Code(err) != exit.UsageError {
			t.Errorf("classroom %s: %v", line, err)
		}
		t.Setenv("PATH", path)
	}
}

var used = module.Version{Path: "example.com/used", Version: "v1.2.0"}

// classroomApp is an app in the git checkout of a course whose operator uses a module, on a machine with an empty
// module cache that reaches a made-up internet until offline is called.
func classroomApp(t *testing.T) (a *app, out, progress *bytes.Buffer, offline func()) {
	t.Helper()
	path := os.Getenv("PATH")
	a, out, progress = boardApp(t)
	t.Setenv("PATH", path)
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)

	internet := modulestest.New(t)
	internet.Add(t, used, map[string]string{"used.go": "package used\n"})
	mod := "module example.com/greeter\n\ngo 1.26.0\n\nrequire " + used.Path + " " + used.Version + "\n"
	for name, text := range map[string]string{
		".gitignore":                 "/.lab/\n",
		"operator/go.mod":            mod,
		"operator/go.sum":            internet.Sum(t, used),
		"operator/used.go":           "package main\n\nimport _ \"" + used.Path + "\"\n",
		"go.mod":                     "module example.com/lab\n\ngo 1.26.0\n",
		"labs/suite.go":              "package labs\n",
		"labs/cmd/lab/main.go":       "package main\n\nfunc main() {}\n",
		"labs/cmd/supervisor/run.go": "package main\n\nfunc main() {}\n",
	} {
		coursetest.Write(t, a.Root, name, text)
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=A", "-c", "user.email=a@example.com", "commit", "-q", "-m", "Begin"},
	} {
		got, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", a.Root}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, got)
		}
	}

	internet.Use(t, t.TempDir())
	return a, out, progress, func() {
		if err := os.Rename(string(internet), string(internet)+".away"); err != nil {
			t.Fatal(err)
		}
	}
}

// From the day before, with internet, to a learner who has none.
func TestTheRoomsServerIsAllThatALearnersGoNeeds(t *testing.T) {
	a, out, progress, offline := classroomApp(t)
	fill := []string{"--cluster", "kind", "modules"}
	if err := cli.Execute(t.Context(), newRootCommand(a), append(fill, "--check")); exit.Code(err) != exit.EnvironmentError {
		t.Errorf("a check of nothing: %v", err)
	}
	contains(t, out.String(), used.String()+"\n")
	if err := cli.Execute(t.Context(), newRootCommand(a), fill); err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	contains(t, out.String(), "1 module, ")
	offline()
	if err := cli.Execute(t.Context(), newRootCommand(a), fill); err != nil {
		t.Errorf("a second time needs the internet: %v", err)
	}
	if err := cli.Execute(t.Context(), newRootCommand(a), append(fill, "--check")); err != nil {
		t.Errorf("a check of all: %v", err)
	}
	modulestest.Write(t, filepath.Join(os.Getenv("GOMODCACHE"), "cache", "download", "example.com", "work", "@v", "v1.0.0.mod"), "module x\n")

	printed := synced{make(chan string, 20)}
	a.Out = printed
	progress.Reset()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cli.Execute(ctx, newRootCommand(a), []string{"--cluster", "kind", "serve"}) }()
	var text strings.Builder
	for !strings.Contains(text.String(), "GOTOOLCHAIN=") {
		select {
		case line := <-printed.lines:
			text.WriteString(line)
		case err := <-ended:
			t.Fatalf("%v\n%s", err, progress)
		}
	}
	url := regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindString(text.String())
	if !strings.Contains(text.String(), "The board: "+url+"/#token=") ||
		!strings.Contains(text.String(), "curl -f -k --pinnedpubkey '"+keyOf(t, a)+"' -O https"+strings.TrimPrefix(url, "http")+"/course.tar.gz") {
		t.Errorf("it prints:\n%s", &text)
	}

	learner := t.TempDir()
	work := filepath.Join(learner, "work")
	coursetest.Write(t, work, "go.mod", "module example.com/mine\n\ngo 1.26.0\n\nrequire "+used.Path+" "+used.Version+"\n")
	get := exec.CommandContext(t.Context(), "go", "mod", "download", used.String())
	get.Dir = work
	// Without a HOME: in one, Go's telemetry would still write when the test is over.
	get.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GOPATH=" + learner, "GOCACHE=" + filepath.Join(learner, "build"),
		"GOENV=off", "GOFLAGS=-modcacherw",
	}
	for _, line := range strings.Split(text.String(), "\n") {
		if entry, ok := strings.CutPrefix(strings.TrimSpace(line), "export "); ok {
			get.Env = append(get.Env, entry)
		}
	}
	if got, err := get.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, got)
	}

	for _, tc := range []struct {
		method, path, host string
		code               int
	}{
		{http.MethodGet, "/course.tar.gz", "", http.StatusOK},
		{http.MethodGet, "/modules/example.com/used/@v/list", "", http.StatusOK},
		{http.MethodGet, "/modules/example.com/other/@v/list", "", http.StatusNotFound},
		{http.MethodGet, "/modules/example.com/work/@v/v1.0.0.mod", "", http.StatusNotFound}, // of the instructor's cache
		{http.MethodGet, "/modules/", "", http.StatusNotFound},
		{http.MethodPut, "/modules/example.com/used/@v/list", "", http.StatusMethodNotAllowed},
		{http.MethodGet, "/", "", http.StatusUnauthorized},
		{http.MethodGet, "/export/csv", "", http.StatusUnauthorized},
		{http.MethodGet, "/modules/example.com/used/@v/list", "evil.example.com", http.StatusMisdirectedRequest},
	} {
		req, err := http.NewRequestWithContext(t.Context(), tc.method, url+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = tc.host
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != tc.code {
			t.Errorf("%s %s at %s: %d, want %d", tc.method, tc.path, tc.host, resp.StatusCode, tc.code)
		}
	}

	second := *a
	second.Out = &bytes.Buffer{}
	err := cli.Execute(t.Context(), newRootCommand(&second), []string{"--cluster", "kind", "serve"})
	if exit.Code(err) != exit.UsageError {
		t.Errorf("a second server of the same room: %v", err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("after an interrupt: %v, %s", err, progress)
	}
	if !strings.Contains(progress.String(), "nobody is in the room, so no clusters are lent") {
		t.Errorf("a server without a room says nothing of lending: %s", progress)
	}
}

func TestTheInstructorHearsWhatTheRoomLacks(t *testing.T) {
	a, _, progress, offline := classroomApp(t)
	coursetest.Write(t, a.Root, "labs/suite.go", "package labs // changed\n")
	printed := synced{make(chan string, 20)}
	a.Out = printed
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- cli.Execute(ctx, newRootCommand(a), []string{"--cluster", "kind", "serve"}) }()
	select {
	case <-printed.lines:
	case err := <-ended:
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, part := range []string{
		"1 module that the labs need, such as example.com/used@v1.2.0", "make classroom-modules", "not committed",
	} {
		if !strings.Contains(progress.String(), part) {
			t.Errorf("nothing about %q:\n%s", part, progress)
		}
	}
	offline()
	err := cli.Execute(t.Context(), newRootCommand(a), []string{"--cluster", "kind", "modules"})
	if exit.Code(err) != exit.EnvironmentError || !strings.Contains(err.Error(), "what has arrived stays") {
		t.Errorf("without internet: %v", err)
	}
}
