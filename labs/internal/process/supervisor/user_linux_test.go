package supervisor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/labs/internal/process/supervisor"
)

// asUser starts a program that sleeps, as a user.
func asUser(t *testing.T, uid int) int {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Dir, cmd.SysProcAttr = "/", &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	return cmd.Process.Pid
}

// processesOf are those of a user that run.
func processesOf(uid int) (all []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/status")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		if strings.Contains(string(data), fmt.Sprintf("\nUid:\t%d\t", uid)) && !strings.Contains(string(data), "\nState:\tZ") {
			all = append(all, strings.ReplaceAll(string(data[:min(len(data), 60)]), "\n", " "))
		}
	}
	return all
}

func needsRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("not root: a program runs as its starter")
	}
}

func TestProcessesOfTheProgramsUserAreKilled(t *testing.T) {
	needsRoot(t)
	uid := supervisor.NewUser()
	asUser(t, uid)
	neighbour := asUser(t, uid+1)
	cmd, _ := supervised(t, "exit 7", "-uid", strconv.Itoa(uid))
	_ = cmd.Wait()
	if got := cmd.ProcessState.ExitCode(); got != 7 {
		t.Errorf("exit code %d, want the program's own 7", got)
	}
	// The kernel has sent the signals, and need not have delivered them.
	gomega.NewWithT(t).Eventually(func() []string { return processesOf(uid) }).WithTimeout(deadline).Should(gomega.BeEmpty())
	if !alive(neighbour) {
		t.Error("the program of another user has ended, too")
	}
}
