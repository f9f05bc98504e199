//go:build linux

package islandtest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/csv"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/internal/checkout/checkouttest"
	"github.com/example/operator-lab/labs/internal/desk"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	root = "../../../.."
	// fewLabs are those that are done without more words. HANDOUT_LABS=all does all of them (make proof), HANDOUT_LABS=2,7 these.
	fewLabs      = "1"
	labsVariable = "HANDOUT_LABS"
	// commandLimit bounds one command of the instructor; the first builds the embedded control plane where there is none.
	commandLimit = 20 * time.Minute
)

// TestTheLabsFromAHandoutNeedNothingButTheRoom has an instructor set up a room and hand out a handout, with the commands
// that they type, and a learner do labs as the handout says, red and green, where nothing but the room's server is in
// reach.
func TestTheLabsFromAHandoutNeedNothingButTheRoom(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Fatal("a network namespace needs root: run this test as root")
	}
	r := newRoom(t)
	r.lab(t, "classroom", "modules")
	server := r.serve(t)
	r.lab(t, "classroom", "handouts", "--server", "http://"+server)
	caches, err := desk.GoCaches(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var modules string
	for _, entry := range caches {
		if value, ok := strings.CutPrefix(entry, "GOMODCACHE="); ok {
			modules = value
		}
	}
	i := newIsland(t, server, modules)
	i.requireAlone(t, listen(t), r.apiServer(t))

	archive := filepath.Join(r.root, ".lab", "handouts", "learner-1.zip")
	d, err := desk.Sit(t.TempDir(), archive, append(caches, "LAB_CACHE="+r.cache)...)
	if err != nil {
		t.Fatal(err)
	}
	d.Seat = i.seat
	if err := i.on(t, courseCommand, "http://"+server+"/course.tar.gz", d.Home); err != nil {
		t.Fatal(err)
	}
	labs := chosen(t)
	for _, n := range labs {
		t.Run(fmt.Sprintf("lab %d", n), func(t *testing.T) { doLab(t, d, n) })
	}
	if zips, err := filepath.Glob(filepath.Join(i.Empty, "cache", "download", "k8s.io", "*", "@v", "*.zip")); err != nil || len(zips) == 0 {
		t.Errorf("no module of Kubernetes came from the room: %v", err)
	}
	r.requireOnBoard(t, labs)
}

// chosen are the labs to do.
func chosen(t *testing.T) (labs []int) {
	t.Helper()
	text := os.Getenv(labsVariable)
	switch text {
	case "":
		text = fewLabs
	case "all":
		text = "1,2,3,4,5,6,7"
	}
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatalf("%s=%s: use all, or numbers of labs such as 1,4", labsVariable, text)
		}
		labs = append(labs, n)
	}
	return labs
}

// doLab wants a lab to be red on its starter and green on its solution.
func doLab(t *testing.T, d *desk.Desk, n int) {
	t.Helper()
	if n > 1 {
		solve(t, d, n-1)
	}
	if red := judge(t, d, n); red.Verdict != verdict.Fail || red.Build != nil || red.Count(verdict.Failed) == 0 {
		t.Errorf("its starter is %s: %+v", red.Verdict, red)
	}
	solve(t, d, n)
	if green := judge(t, d, n); green.Verdict != verdict.Pass {
		t.Errorf("its solution is %s: %+v", green.Verdict, green)
	}
}

func solve(t *testing.T, d *desk.Desk, n int) {
	t.Helper()
	if err := d.Solve(t.Context(), n); err != nil {
		t.Fatal(err)
	}
}

func judge(t *testing.T, d *desk.Desk, n int) *verdict.Result {
	t.Helper()
	result, err := d.Judge(t.Context(), n, "CLUSTER=embedded")
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// room is an instructor's checkout of the course, as it is here, with one learner.
type room struct {
	binary, root, cache string
}

func newRoom(t *testing.T) *room {
	t.Helper()
	r := &room{binary: filepath.Join(t.TempDir(), "lab"), root: filepath.Join(t.TempDir(), "checkout"), cache: os.Getenv("LAB_CACHE")}
	if r.cache == "" {
		dir, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		r.cache = filepath.Join(dir, "operator-lab")
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", r.binary, "./labs/cmd/lab")
	build.Dir, build.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build lab: %v\n%s", err, out)
	}
	copyCheckout(t, r.root)
	t.Cleanup(func() {
		// A test's context has ended when it cleans up.
		if out, err := r.command(context.WithoutCancel(t.Context()), "classroom", "down").CombinedOutput(); err != nil {
			t.Errorf("lab classroom down: %v\n%s", err, out)
		}
	})
	r.lab(t, "classroom", "up", "--learners", "1")
	return r
}

// copyCheckout copies what is tracked here, or would be, into a repository of its own: a room serves what is committed.
func copyCheckout(t *testing.T, to string) {
	t.Helper()
	checkouttest.Copy(t, root, to)
	git(t, to, "init", "-q")
	git(t, to, "add", ".")
	git(t, to, "-c", "user.name=Instructor", "-c", "user.email=instructor@example.com", "commit", "-q", "-m", "The course")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, &stderr)
	}
	return string(out)
}

// command is one that the instructor types.
func (r *room) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, r.binary, append([]string{"--yes", "--cluster", "embedded"}, args...)...)
	cmd.Dir, cmd.Env = r.root, append(os.Environ(), "LAB_CACHE="+r.cache, "LAB_BOARD=")
	return cmd
}

// lab runs a command that has to work, and returns what it prints.
func (r *room) lab(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), commandLimit)
	defer cancel()
	cmd := r.command(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("lab %v: %v\n%s%s", args, err, out, &stderr)
	}
	return string(out)
}

// serve starts the room's server, and returns its address.
func (r *room) serve(t *testing.T) string {
	t.Helper()
	cmd := r.command(context.WithoutCancel(t.Context()), "classroom", "serve")
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
			t.Errorf("lab classroom serve: %v", err)
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
func (r *room) apiServer(t *testing.T) string {
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

// requireOnBoard wants the board to know that the learner has passed the labs.
func (r *room) requireOnBoard(t *testing.T, labs []int) {
	t.Helper()
	table, err := csv.NewReader(strings.NewReader(r.lab(t, "board", "export", "--format", "csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for _, line := range table[1:] { // learner, lab, title, verdict, …
		shown[line[0]+" lab "+line[1]] = line[3]
	}
	for _, n := range labs[:len(labs)-1] { // the last one may wait for the next check
		if who := fmt.Sprintf("learner-1 lab %d", n); shown[who] != string(verdict.Pass) {
			t.Errorf("the board shows %s as %q: %v", who, shown[who], shown)
		}
	}
}
