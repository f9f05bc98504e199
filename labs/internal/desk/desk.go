// Package desk is a learner's place in the room, for rehearsals and tests: an empty home, a handout that was unpacked
// there, and the course as the room's server sends it. What the handout's page tells people to type is typed here.
package desk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/checkout"
	"github.com/example/operator-lab/labs/internal/processgroup"
	"github.com/example/operator-lab/labs/internal/verdict"
)

const (
	// courseLimit is how long the course may take to arrive: a megabyte.
	courseLimit = time.Minute
	// leaveLimit is how long what is typed may clean up after an interrupt: it deletes a cluster.
	leaveLimit = 30 * time.Second
)

// Desk is one place. Nothing on it is used by two goroutines at once.
type Desk struct {
	// Home is the learner's home, in which there is nothing but their handout and the course.
	Home string
	// Handout is the folder that came out of the archive.
	Handout string
	// Course is the checkout; [Desk.FetchCourse] fills it.
	Course string
	// Env is what the learner's shell finds in its environment.
	Env []string
	// Seat, if it is not nil, changes a command before it runs, to put it somewhere.
	Seat func(*exec.Cmd)
}

// Sit unpacks a handout into a new home below dir. env is added to the environment of the learner's shell, which has of
// this machine the programs, and none of the settings.
func Sit(dir, archive string, env ...string) (*Desk, error) {
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		return nil, fmt.Errorf("make a home: %w", err)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, fmt.Errorf("make a home: %w", err)
	}
	defer root.Close()
	if err := unzip(archive, root); err != nil {
		return nil, err
	}
	id := strings.TrimSuffix(filepath.Base(archive), filepath.Ext(archive))
	return &Desk{
		Home: home, Handout: filepath.Join(home, id), Course: filepath.Join(home, checkout.Folder),
		Env: append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8"}, env...),
	}, nil
}

// engineSettings are what the clients of container engines go by.
var engineSettings = []string{
	"KIND_EXPERIMENTAL_PROVIDER", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST",
	"CONTAINER_CONNECTION", "CONTAINERD_ADDRESS", "CONTAINERD_NAMESPACE", "XDG_RUNTIME_DIR",
}

// Engine are the settings by which this machine's container engine is found, for an environment without a home.
func Engine() []string {
	var env []string
	for _, name := range engineSettings {
		if value := os.Getenv(name); value != "" {
			env = append(env, name+"="+value)
		}
	}
	home, err := os.UserHomeDir()
	if err != nil || os.Getenv("DOCKER_CONFIG") != "" {
		return env
	}
	// Which engine Docker's client talks to may stand there.
	if _, err := os.Stat(filepath.Join(home, ".docker")); err == nil {
		env = append(env, "DOCKER_CONFIG="+filepath.Join(home, ".docker"))
	}
	return env
}

// GoCaches are the settings by which another home uses this machine's build cache and module cache. A desk that
// compiled everything anew would take ten minutes of this machine's time, and learn nothing about the room.
func GoCaches(ctx context.Context) ([]string, error) {
	names := []string{"GOCACHE", "GOMODCACHE"}
	out, err := exec.CommandContext(ctx, "go", append([]string{"env", "-json"}, names...)...).Output()
	set := map[string]string{}
	if err == nil {
		err = json.Unmarshal(out, &set)
	}
	if err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("find the caches of Go: go env: %w", err))
	}
	var env []string
	for _, name := range names {
		env = append(env, name+"="+set[name])
	}
	return env, nil
}

// FetchCourse gets the course from the room's server, at an address such as http://192.168.1.5:7777/course.tar.gz.
func (d *Desk) FetchCourse(ctx context.Context, url string) error {
	if err := d.fetchCourse(ctx, url); err != nil {
		return fmt.Errorf("get the course from %s: %w", url, err)
	}
	return nil
}

func (d *Desk) fetchCourse(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, courseLimit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	// The room is not behind anybody's proxy.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	root, err := os.OpenRoot(d.Home)
	if err != nil {
		return err
	}
	defer root.Close()
	return untar(response.Body, root)
}

// Type runs what somebody types in the folder of the course, in a new terminal that was told about the room. It returns
// what was printed; the error ends with the last line of it.
func (d *Desk) Type(ctx context.Context, line string) (string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", `source "$0/env.sh" && cd "$1" && eval "$2"`, d.Handout, d.Course, line)
	cmd.Env, cmd.WaitDelay = d.Env, leaveLimit
	processgroup.Own(cmd, syscall.SIGINT)
	if d.Seat != nil {
		d.Seat(cmd)
	}
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return string(out), ctx.Err()
	}
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", line, err, lastLine(string(out)))
	}
	return string(out), err
}

// lastLine is the last one that is not make's, which only repeats that something failed.
func lastLine(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for len(lines) > 1 && strings.HasPrefix(lines[len(lines)-1], "make") {
		lines = lines[:len(lines)-1]
	}
	return strings.TrimSpace(lines[len(lines)-1])
}

// Judge asks for the verdict on a lab as learners do, with settings such as CLUSTER=embedded. A verdict is a verdict,
// whatever it says; the error is that there was none.
func (d *Desk) Judge(ctx context.Context, lab int, settings ...string) (*verdict.Result, error) {
	state := filepath.Join(d.Course, ".lab")
	if err := os.Remove(verdict.Path(state, lab)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("forget the last verdict: %w", err)
	}
	line := strings.Join(append([]string{fmt.Sprintf("make lab-%d", lab)}, settings...), " ")
	_, typed := d.Type(ctx, line)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	// make answers every failure with the same exit code; what it was is in the result.
	result, err := verdict.Read(state, lab)
	if err != nil && typed != nil {
		err = typed
	}
	return result, err
}

// Solve takes over our solution of a lab.
func (d *Desk) Solve(ctx context.Context, lab int) error {
	_, err := d.Type(ctx, fmt.Sprintf("make solve-%d", lab))
	return err
}

// Kubeconfig is the key to the learner's own cluster.
func (d *Desk) Kubeconfig() string { return filepath.Join(d.Handout, "kubeconfig") }
