// Package gotest runs `go test`, shows what failed, and counts: a test that was skipped counts as one
// that failed, because nothing in this project may be skipped without anybody noticing.
package gotest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/example/operator-lab/labs/internal/plain"
)

// interruptGrace is how long tests may clean up after an interrupt before they are killed.
const interruptGrace = 2 * time.Minute

// Count is how many tests ended how. Subtests count, and so does the package of a test that could not
// be run at all.
type Count struct {
	Passed, Failed, Skipped int
	// Again is how many verdicts blamed the machine and were asked for once more, on a new cluster.
	Again int
}

// Add adds up.
func (c Count) Add(o Count) Count {
	return Count{c.Passed + o.Passed, c.Failed + o.Failed, c.Skipped + o.Skipped, c.Again + o.Again}
}

// String is the line that closes a run.
func (c Count) String() string {
	line := fmt.Sprintf("%d passed, %d failed, %d skipped", c.Passed, c.Failed, c.Skipped)
	if c.Again > 0 {
		return fmt.Sprintf("judged-again-%d: %s", c.Again, line)
	}
	return line
}

// Bad says what must not stay as it is: tests that failed or were skipped.
func (c Count) Bad() error {
	switch {
	case c.Failed > 0:
		return fmt.Errorf("%d tests failed", c.Failed)
	case c.Skipped > 0:
		return fmt.Errorf("%d tests were skipped: every test has to run", c.Skipped)
	}
	return nil
}

// Err is nil when tests ran, and none failed or was skipped.
func (c Count) Err() error {
	if c.Passed == 0 && c.Bad() == nil {
		return errors.New("no test ran")
	}
	return c.Bad()
}

// Run is one call of go test.
type Run struct {
	// Dir is the module's folder.
	Dir string
	// Args are the arguments after `go test -json`.
	Args []string
	// Env is added to the environment.
	Env []string
	// Out gets one line for each package, and the output of what failed.
	Out io.Writer
}

// event is one line of `go test -json`; see go doc test2json.
type event struct {
	Action, Package, Test, Output, ImportPath string
	Elapsed                                   float64
}

// Test runs the tests and counts them. The error is about the run itself; failed tests are in the count.
func (r Run) Test(ctx context.Context) (Count, error) {
	cmd := exec.CommandContext(ctx, "go", append([]string{"test", "-json"}, r.Args...)...)
	cmd.Dir, cmd.Env, cmd.Stderr = r.Dir, append(os.Environ(), r.Env...), r.Out
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGINT) }
	cmd.WaitDelay = interruptGrace
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return Count{}, fmt.Errorf("run go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return Count{}, fmt.Errorf("run go test: %w", err)
	}
	c := newCounter(r.Out)
	readErr := c.read(stdout)
	waitErr := cmd.Wait()
	var exited *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return c.count, ctx.Err()
	case readErr != nil:
		return c.count, readErr
	case waitErr != nil && !errors.As(waitErr, &exited):
		return c.count, fmt.Errorf("run go test: %w", waitErr)
	case waitErr != nil && c.count.Failed == 0:
		c.count.Failed++ // go test itself says no: nothing that failed is lost
	}
	return c.count, nil
}

// counter reads events.
type counter struct {
	out    io.Writer
	count  Count
	output map[string][]string // by package and test
	ran    map[string]int      // tests by package
	failed map[string]int      // those of them that failed
}

func newCounter(out io.Writer) *counter {
	return &counter{out: out, output: map[string][]string{}, ran: map[string]int{}, failed: map[string]int{}}
}

func (c *counter) read(stdout io.Reader) error {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(c.out, plain.Text(lines.Text()))
			continue
		}
		c.take(e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the output of go test: %w", err)
	}
	return nil
}

func (c *counter) take(e event) {
	e.Output = plain.Text(e.Output)
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		c.output[key] = append(c.output[key], e.Output)
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.endPackage(e, key)
			return
		}
		c.ran[e.Package]++
		c.endTest(e, key)
	}
}

func (c *counter) endTest(e event, key string) {
	switch e.Action {
	case "pass":
		c.count.Passed++
	case "skip":
		c.count.Skipped++
		c.show("SKIP", e, key)
	case "fail":
		c.count.Failed++
		c.failed[e.Package]++
		c.show("FAIL", e, key)
	}
	delete(c.output, key)
}

func (c *counter) endPackage(e event, key string) {
	if e.Action == "fail" && c.failed[e.Package] == 0 {
		c.count.Failed++ // it does not compile, or its TestMain gave up
		c.show("FAIL", e, key)
	}
	if c.ran[e.Package] > 0 {
		fmt.Fprintf(c.out, "%-4s %-72s %4d tests %7.1f s\n", e.Action, e.Package, c.ran[e.Package], e.Elapsed)
	}
}

func (c *counter) show(word string, e event, key string) {
	fmt.Fprintf(c.out, "--- %s %s %s (%.1f s)\n%s", word, e.Package, e.Test, e.Elapsed, strings.Join(c.output[key], ""))
}
