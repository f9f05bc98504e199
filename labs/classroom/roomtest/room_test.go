//go:build linux

package roomtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

const (
	repository = "../../.."
	// commandLimit bounds one command of the instructor; the first builds the embedded control plane where there is none.
	commandLimit = 20 * time.Minute
)

// instructor has a checkout of the course, as it is here, and learners.
type instructor struct {
	provider, binary, root, cache string
}

// newInstructor gives an instructor the program and a checkout.
func newInstructor(t *testing.T, provider string) *instructor {
	t.Helper()
	r := &instructor{provider: provider, binary: filepath.Join(t.TempDir(), "classroom"), root: filepath.Join(t.TempDir(), "checkout"), cache: cacheDir(t)}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", r.binary, "./labs/classroom/cmd/classroom")
	build.Dir, build.Env = repository, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build classroom: %v\n%s", err, out)
	}
	copyCheckout(t, r.root)
	return r
}

// newRoom makes a room with the clusters of learners learner-1, learner-2 and so on.
func newRoom(t *testing.T, provider string, learners int) *instructor {
	t.Helper()
	r := newInstructor(t, provider)
	t.Cleanup(func() {
		// A test's context has ended when it cleans up.
		if out, err := r.command(context.WithoutCancel(t.Context()), "down").CombinedOutput(); err != nil {
			t.Errorf("classroom down: %v\n%s", err, out)
		}
	})
	r.classroom(t, "up", "--learners", strconv.Itoa(learners))
	return r
}

func cacheDir(t *testing.T) string {
	t.Helper()
	dir, err := clusters.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyCheckout copies what is tracked here, or would be, into a repository of its own: a room serves what is committed.
func copyCheckout(t *testing.T, to string) {
	t.Helper()
	coursetest.CopyCheckout(t, repository, to)
	git(t, to, "init", "-q")
	git(t, to, "add", ".")
	git(t, to, "-c", "user.name=Instructor", "-c", "user.email=instructor@example.com", "commit", "-q", "-m", "The course")
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, out)
	}
}

// command is one that the instructor types.
func (r *instructor) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, append([]string{"--yes", "--cluster", r.provider}, args...)...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "LAB_CACHE="+r.cache, "LAB_BOARD=")
	return cmd
}

// classroom runs a command that has to work, and returns what it prints.
func (r *instructor) classroom(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	cmd := r.command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("classroom %v: %v\n%s%s", args, err, out, &stderr)
	}
	return string(out)
}

// serve starts the room's server, and returns its address.
func (r *instructor) serve(t *testing.T) string {
	t.Helper()
	cmd := r.command(context.WithoutCancel(t.Context()), "serve")
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
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if link, ok := strings.CutPrefix(lines.Text(), "The board: "); ok {
			u, err := url.Parse(link)
			if err != nil {
				t.Fatal(err)
			}
			go func() { // else it would wait for somebody to read
				for lines.Scan() {
				}
			}()
			return u.Host
		}
	}
	t.Fatalf("the room's server ends: %v", lines.Err())
	return ""
}

// apiServer is the address of the cluster that the learner was given.
func (r *instructor) apiServer(t *testing.T) string {
	t.Helper()
	config, err := clusters.RESTConfig(filepath.Join(r.root, ".lab", "classroom", "learner-1", "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	return u.Host
}

// handout is the archive of a learner's handout.
func (r *instructor) handout(id string) string {
	return filepath.Join(r.root, ".lab", "handouts", id+".zip")
}

// board are the verdicts on the board, such as "pass" of "learner-1 lab 1".
func (r *instructor) board(t *testing.T) map[string]string {
	t.Helper()
	return verdicts(t, r.classroom(t, "board", "export", "--format", "csv"))
}

// verdicts reads a table with the columns learner, lab and verdict.
func verdicts(t *testing.T, table string) map[string]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(table)).ReadAll()
	if err != nil || len(rows) == 0 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	learner, lab, verdict := slices.Index(rows[0], "learner"), slices.Index(rows[0], "lab"), slices.Index(rows[0], "verdict")
	found := map[string]string{}
	for _, row := range rows[1:] {
		found[row[learner]+" lab "+row[lab]] = row[verdict]
	}
	return found
}
