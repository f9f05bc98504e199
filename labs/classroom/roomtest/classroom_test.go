//go:build linux

package roomtest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
	"github.com/example/operator-lab/labs/internal/process"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	repository = "../../.."
	// labsVariable is "all" for labs 1 to 10; otherwise lab 1 is done.
	labsVariable = "CLASSROOM_LABS"
	allLabs      = 10
)

// TestAClassroom is a day of four learners. What they need they get from their instructor: Go, the course, modules, and the control
// plane. Nothing else is in their reach: an empty home, no cache of the instructor's, no other proxy.
func TestAClassroom(t *testing.T) {
	i := newInstructor(t)
	i.run(t, "up", "--learners", "1")
	i.run(t, "up", "--learners", "2") // the second one alone is missing
	i.run(t, "modules")
	page, files, join := i.serve(t)
	first := newLearner(t, files, join, "Ana")
	first.run(t, "grep server: .lab/classroom.kubeconfig")
	last := 1
	if os.Getenv(labsVariable) == "all" {
		last = allLabs
	}
	for lab := 1; lab <= last; lab++ {
		first.judge(t, lab, verdict.Fail) // the starter
		first.run(t, fmt.Sprintf("make solve-%d", lab))
		first.judge(t, lab, verdict.Pass)
	}
	for _, name := range []string{"Bob", "김민준", "learner-3"} {
		first.neighbour(t, join, name).judge(t, 1, verdict.Fail)
	}
	first.judge(t, last, verdict.Pass) // a check does not wait for the board: this one sends what is left

	want := map[string]string{"Bob lab 1": "fail", "김민준 lab 1": "fail", "learner-3 lab 1": "fail"}
	for lab := 1; lab <= last; lab++ {
		want[fmt.Sprintf("Ana lab %d", lab)] = "pass"
	}
	shown := board(t, page)
	for who, verdict := range want {
		if shown[who] != verdict {
			t.Errorf("the board shows %s as %q, and the learner saw %s", who, shown[who], verdict)
		}
	}
}

// instructor has a checkout of the course, as it is here, and a program.
type instructor struct{ root, program, cache string }

func newInstructor(t *testing.T) instructor {
	t.Helper()
	cache, err := components.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	i := instructor{root: filepath.Join(t.TempDir(), "checkout"), program: filepath.Join(t.TempDir(), "classroom"), cache: cache}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Dir(i.program), "./labs/classroom/cmd/classroom", "./labs/cmd/lab")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	coursetest.CopyCheckout(t, repository, i.root)
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=Instructor", "-c", "user.email=instructor@example.com", "commit", "-q", "-m", "The course"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", i.root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	t.Cleanup(func() {
		i.program = filepath.Join(filepath.Dir(i.program), "lab")
		out, err := i.command(context.WithoutCancel(t.Context()), "down", "--all").CombinedOutput()
		if err != nil || strings.Count(string(out), "Removed cluster learner-") != 2 {
			t.Errorf("lab down: %v\n%s", err, out)
		}
	})
	return i
}

func (i instructor) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, i.program, append([]string{"--yes", "--cluster", "embedded"}, args...)...)
	cmd.Dir, cmd.Env = i.root, append(os.Environ(), "LAB_CACHE="+i.cache)
	return cmd
}

func (i instructor) run(t *testing.T, args ...string) {
	t.Helper()
	if out, err := i.command(t.Context(), args...).CombinedOutput(); err != nil {
		t.Fatalf("classroom %v: %v\n%s", args, err, out)
	}
}

// serve starts the room's server, and gives what it prints: where the board is, where files are, and how to join.
func (i instructor) serve(t *testing.T) (page, files, join string) {
	t.Helper()
	cmd := i.command(context.WithoutCancel(t.Context()), "serve", "--port", "17777")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil && cmd.ProcessState.ExitCode() != 130 {
			t.Errorf("classroom serve: %v", err)
		}
	})
	for lines := bufio.NewScanner(out); files == "" && lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		switch value = strings.TrimSpace(value); name {
		case "The board":
			page = value
		case "To join":
			join = value
		case "The course":
			files = value
		}
	}
	return page, files, join
}

var cell = regexp.MustCompile(`aria-label="([^,"]+), lab (\d+): (\w+)`)

// board are the verdicts on the board, such as "pass" of "Ana lab 1".
func board(t *testing.T, page string) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, match := range cell.FindAllStringSubmatch(fetch(t, page), -1) {
		found[match[1]+" lab "+match[2]] = match[3]
	}
	return found
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s, %v", url, resp.Status, err)
	}
	return string(text)
}

// learner types what the page says, in a shell with an empty home.
type learner struct{ home, course, settings string }

var (
	commands = regexp.MustCompile(`(?s)<pre>(.*?)</pre>`)
	tags     = regexp.MustCompile(`<[^>]*>`)
)

// newLearner does all that the page of the room says.
func newLearner(t *testing.T, files, join, name string) *learner {
	t.Helper()
	l := &learner{home: t.TempDir()}
	l.course = l.home
	for _, match := range commands.FindAllStringSubmatch(fetch(t, files), -1) {
		lines := html.UnescapeString(tags.ReplaceAllString(match[1], ""))
		if strings.Contains(lines, "docker load") {
			continue // this learner has no container engine
		}
		lines, _, _ = strings.Cut(lines, "make join")
		l.run(t, lines)
		for line := range strings.SplitSeq(lines, "\n") {
			if _, export, found := strings.Cut(line, "export "); found {
				l.settings += "export " + strings.ReplaceAll(export, "$PWD", l.home) + "\n"
			}
		}
	}
	l.course = filepath.Join(l.home, "operator-lab")
	l.join(t, join, name)
	return l
}

func (l *learner) join(t *testing.T, join, name string) {
	t.Helper()
	out := l.run(t, strings.Replace(join, "NAME=…", "NAME='"+name+"'", 1))
	if !strings.Contains(out, "You are "+name) {
		t.Fatalf("%s", out)
	}
}

// neighbour has caches like l, and joins under another name.
func (l *learner) neighbour(t *testing.T, join, name string) *learner {
	t.Helper()
	n := &learner{home: l.home, course: filepath.Join(t.TempDir(), "operator-lab"), settings: l.settings}
	l.run(t, fmt.Sprintf("cp -r . %s && rm -rf %s/.lab %s/workspace", n.course, n.course, n.course))
	n.join(t, join, name)
	return n
}

// shell runs lines of a shell.
func (l *learner) shell(t *testing.T, lines string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-ec", l.settings+lines)
	cmd.Dir = l.course
	cmd.Env = []string{"PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=" + l.home, "LANG=C.UTF-8", "CLUSTER=embedded"}
	process.Own(cmd, syscall.SIGINT)
	cmd.WaitDelay = 30 * time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (l *learner) run(t *testing.T, lines string) string {
	t.Helper()
	out, err := l.shell(t, lines)
	if err != nil {
		t.Fatalf("%s: %v\n%s", lines, err, out)
	}
	return out
}

// judge wants a verdict of make lab-N.
func (l *learner) judge(t *testing.T, lab int, want verdict.Verdict) {
	t.Helper()
	state, workspace := filepath.Join(l.course, ".lab"), filepath.Join(l.course, "workspace")
	if err := os.RemoveAll(verdict.Path(state, workspace, lab)); err != nil {
		t.Fatal(err)
	}
	out, _ := l.shell(t, fmt.Sprintf("make lab-%d", lab)) // make ends with the same code after every failure
	result, err := verdict.Read(state, workspace, lab)
	if err != nil || result.Verdict != want || result.Build != nil {
		t.Errorf("lab %d: want %s: %v\n%s", lab, want, err, out)
	}
}
