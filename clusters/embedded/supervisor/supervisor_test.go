package supervisor

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/example/operator-lab/clusters/internal/process"
)

const (
	// runCommand makes this test binary a supervisor, startCommand somebody who starts one and waits.
	runCommand   = "run"
	startCommand = "start"
	// deadline is more than anything here takes.
	deadline = 10 * time.Second
)

func TestMain(m *testing.M) {
	if len(os.Args) != 3 {
		os.Exit(m.Run())
	}
	var err error
	switch os.Args[1] {
	case runCommand:
		err = Run(os.Args[2])
	case startCommand:
		if _, err = Start(os.Args[2], os.Args[0], runCommand); err == nil {
			select {} // until somebody kills us
		}
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// shell is a program of a plan.
func shell(name, script string) Program {
	return Program{Name: name, Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH")}}
}

// planned is a folder with a plan, whose processes end with the test.
func planned(t *testing.T, programs ...Program) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plan")
	if err := WritePlan(dir, Plan{Programs: programs}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := End(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func start(t *testing.T, dir string) *Handle {
	t.Helper()
	h, err := Start(dir, os.Args[0], runCommand)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// state waits until the supervisor says that every program runs.
func state(t *testing.T, dir string) (s State) {
	t.Helper()
	gomega.NewWithT(t).Eventually(func() bool {
		var err error
		if s, err = ReadState(dir); err != nil {
			return false
		}
		for _, p := range s.Programs {
			if p.Ended != "" {
				return false
			}
		}
		return true
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "every program runs")
	return s
}

func TestProgramsWorkInTheFolderAndWriteTheirLogs(t *testing.T) {
	dir := planned(t, shell("one", "echo $HOME; pwd; env | grep -c SECRET; exec sleep 100"))
	t.Setenv("SECRET", "1")
	start(t, dir)
	gomega.NewWithT(t).Eventually(func() bool {
		data, _ := os.ReadFile(Log(dir, "one"))
		return string(data) == dir+"\n"+dir+"\n0\n"
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "three lines in the log")
}

func TestALogThatIsTooLongBeginsAnew(t *testing.T) {
	dir := planned(t, shell("one", fmt.Sprintf("head -c %d /dev/zero; sleep 2; echo and on; exec sleep 100", logLimit+1)))
	start(t, dir)
	gomega.NewWithT(t).Eventually(func() string {
		info, err := os.Stat(Log(dir, "one"))
		if err != nil || info.Size() > 100 {
			return ""
		}
		data, _ := os.ReadFile(Log(dir, "one"))
		return string(data)
	}).WithTimeout(deadline).Should(gomega.Equal("and on\n"))
	if err := os.Truncate(Log(dir, Self), logLimit+1); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		info, err := os.Stat(Log(dir, Self))
		return err == nil && info.Size() == 0
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "the supervisor's own log begins anew")
}

func TestAProgramWaitsForItsSocket(t *testing.T) {
	late := shell("late", "exec sleep 100")
	late.After = "socket"
	dir := planned(t, shell("early", "exec sleep 100"), late)
	start(t, dir)
	gomega.NewWithT(t).Eventually(func() bool {
		s, err := ReadState(dir)
		return err == nil && s.Programs[0].Ended == ""
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "the early program runs")
	if s, err := ReadState(dir); err != nil || s.Programs[1].Starts != 0 {
		t.Fatalf("state %+v, %v: started before anybody listened", s, err)
	}
	t.Chdir(dir) // for the short path
	l, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	state(t, dir)
}

func TestAProgramThatEndsIsStartedAgain(t *testing.T) {
	dir := planned(t, shell("short", "echo once; exec sleep 100"))
	h := start(t, dir)
	before := state(t, dir).Program("short").Process
	if err := Restart(dir, "short"); err != nil {
		t.Fatal(err)
	}
	if ended := <-h.Ended; ended.Name != "short" || !strings.Contains(ended.Ended, "killed") {
		t.Errorf("news %+v, want the end of short", ended)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		s, err := ReadState(dir)
		p := s.Program("short")
		return err == nil && p.Ended == "" && p.Process != before && p.Starts == 2
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "another process")
}

func TestAProgramThatCannotBeStartedIsTold(t *testing.T) {
	dir := planned(t, Program{Name: "absent", Path: "/nowhere/absent"})
	h := start(t, dir)
	if ended := <-h.Ended; ended.Name != "absent" || !strings.Contains(ended.Ended, "no such file") {
		t.Errorf("news %+v, want that absent does not exist", ended)
	}
}

func TestEverythingEndsWithTheStarter(t *testing.T) {
	dir := planned(t, shell("one", "trap '' TERM INT HUP; while :; do sleep 0.1; done"), shell("two", "exec sleep 100"))
	starter := exec.CommandContext(t.Context(), os.Args[0], startCommand, dir)
	if err := starter.Start(); err != nil {
		t.Fatal(err)
	}
	s := state(t, dir)
	if err := starter.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = starter.Wait() // killed, as intended
	gomega.NewWithT(t).Eventually(func() bool { return len(s.living()) == 0 }).WithTimeout(deadline).Should(gomega.BeTrue(), "all processes are gone")
	gomega.NewWithT(t).Eventually(func() bool {
		_, err := os.Stat(dir)
		return err != nil
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "the folder is gone")
}

func TestWhatIsKeptOutlivesTheStarter(t *testing.T) {
	dir := planned(t, shell("one", "exec sleep 100"))
	h := start(t, dir)
	s := state(t, dir)
	if err := h.Keep(); err != nil {
		t.Fatal(err)
	}
	// What the end of this process would do.
	if err := h.parentPipe.Close(); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		s, err := ReadState(dir)
		return err == nil && s.Kept
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "it is written down as kept")
	// It has read the end of the parent pipe by the time that it has restarted a program.
	if err := Restart(dir, "one"); err != nil {
		t.Fatal(err)
	}
	gomega.NewWithT(t).Eventually(func() bool {
		s, err := ReadState(dir)
		return err == nil && s.Programs[0].Starts == 2
	}).WithTimeout(deadline).Should(gomega.BeTrue(), "the program is started again")
	if err := End(dir); err != nil {
		t.Fatal(err)
	}
	if left := s.living(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
}

func TestEndEndsWhatAKilledSupervisorLeft(t *testing.T) {
	dir := planned(t, shell("one", "exec sleep 100"))
	start(t, dir)
	s := state(t, dir)
	// A supervisor that hangs does not do as it is told.
	if err := syscall.Kill(s.Supervisor.PID, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := End(dir); err != nil {
		t.Fatal(err)
	}
	if left := s.living(); len(left) > 0 {
		t.Errorf("processes %v are left", left)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Errorf("%s is left", dir)
	}
}

func TestEndSparesAProcessThatOnlyHasTheNumber(t *testing.T) {
	bystander := exec.CommandContext(t.Context(), "sleep", "100")
	if err := bystander.Start(); err != nil {
		t.Fatal(err)
	}
	id, err := process.Of(bystander.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	other := id
	other.Started += "1"
	dir := planned(t)
	if err := writeJSON(filepath.Join(dir, stateFile), State{Supervisor: other, Programs: []Running{{Name: "one", Process: other}}}); err != nil {
		t.Fatal(err)
	}
	if err := End(dir); err != nil {
		t.Fatal(err)
	}
	if !id.Alive() {
		t.Error("a process was ended that only has the number of one of ours")
	}
}

func TestEndingNothingIsNoError(t *testing.T) {
	if err := End(filepath.Join(t.TempDir(), "none")); err != nil {
		t.Error(err)
	}
}
