package process_test

import (
	"bufio"
	"context"
	"io"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/process"
)

// signalTimeout is for a signal on a busy machine.
const signalTimeout = 10 * time.Second

// parent prints a line when it has a child, and waits for it.
const parent = "sleep 600 & echo; wait"

// start runs parent in a group of its own. What is read ends when parent and its child have ended.
func start(ctx context.Context, t *testing.T) (*exec.Cmd, *bufio.Reader) {
	t.Helper()
	cmd := exec.CommandContext(ctx, "sh", "-c", parent)
	process.Own(cmd, syscall.SIGTERM)
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	output := bufio.NewReader(pipe)
	if _, err := output.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	return cmd, output
}

func TestOwnEndsTheWholeGroup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd, output := start(ctx, t)
	late := time.AfterFunc(signalTimeout, func() {
		t.Error("the child goes on")
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	})
	cancel()
	if _, err := io.ReadAll(output); err != nil {
		t.Error(err)
	}
	late.Stop()
	if err := cmd.Wait(); err == nil {
		t.Error("the command ended by itself")
	}
}
