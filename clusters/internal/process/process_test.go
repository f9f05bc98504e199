package process

import (
	"os"
	"os/exec"
	"testing"
)

func TestSelfIsAlive(t *testing.T) {
	id, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	if id.PID != os.Getpid() || id.Started == "" || id.Boot == "" {
		t.Errorf("Self() = %+v, want the pid of this process and no empty field", id)
	}
	if !id.Alive() {
		t.Errorf("%+v is this process and not alive", id)
	}
}

func TestAnotherProcessWithTheSameNumberIsNotAlive(t *testing.T) {
	id, err := Self()
	if err != nil {
		t.Fatal(err)
	}
	reused, rebooted := id, id
	reused.Started += "1"
	rebooted.Boot += "x"
	if reused.Alive() {
		t.Error("a process that started at another time counts as the same one")
	}
	if rebooted.Alive() {
		t.Error("a process of an earlier boot counts as alive")
	}
}

func TestEndedProcessIsNotAlive(t *testing.T) {
	boot, err := bootID()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sleep", "60")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	started, err := startOf(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	id := ID{PID: cmd.Process.Pid, Started: started, Boot: boot}
	if !id.Alive() {
		t.Errorf("%+v runs and is not alive", id)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as intended
	if id.Alive() {
		t.Errorf("%+v was killed and counts as alive", id)
	}
}
