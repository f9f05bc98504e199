//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/clitest"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// doctored is a doctor on a machine that has everything for a room of three.
func doctored(t *testing.T) (d *roomDoctor, out *bytes.Buffer) {
	t.Helper()
	a, out, progress, _ := classroomApp(t)
	t.Setenv("CI", "")
	a.Cluster = cli.Kind
	if err := cli.Execute(t.Context(), newRootCommand(a), []string{"--cluster", cli.Kind, "modules"}); err != nil {
		t.Fatalf("%v\n%s", err, progress)
	}
	out.Reset()
	all := &farm{Provider: clitest.Provider("kind/docker"), state: a.State, specs: map[string]clusters.Spec{}, broken: map[string]error{}}
	c := newRoom(a)
	c.open = func() (*clusters.Owned, error) { return clusters.NewOwned(a.State, all), nil }
	c.supplies = func(context.Context, nodeimage.Image) map[doctor.Resource]doctor.Supply {
		return map[doctor.Resource]doctor.Supply{doctor.Memory: {Amount: 8 << 30}, doctor.Disk: {Amount: 50 << 30}}
	}
	c.healthy = all.health
	d = newRoomDoctor(c)
	d.size, d.sized, d.listen = 3, true, "127.0.0.1:0"
	d.offer = lendFlags{lend: 1, ready: 1, playground: true, given: func(flag string) bool { return flag == "lend" }}
	d.machine = func(context.Context) []doctor.Finding {
		return []doctor.Finding{{Name: "disk", OK: true, Detail: "50 GB free"}}
	}
	d.image = func(context.Context) (nodeimage.Image, bool, error) {
		return nodeimage.Image{Ref: "node:v1", Local: true, HasOperand: true}, true, nil
	}
	d.packed = func(context.Context) (bool, error) { return false, nil }
	d.runtimes = func(context.Context) ([]string, string, error) { return []string{"runc"}, "runc", nil }
	return d, out
}

// lines are the findings, with one space between the words of each.
func lines(out *bytes.Buffer) string {
	var all []string
	for line := range strings.Lines(out.String()) {
		all = append(all, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(all, "\n")
}

func TestClassroomDoctorLooksAtTheMachineAndTheRoomAndChangesNothing(t *testing.T) {
	d, out := doctored(t)
	if err := d.run(t.Context()); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	contains(t, lines(out),
		"ok disk 50 GB free",
		"ok room 3 learners and 1 cluster at a time for verdicts fit",
		"ok go modules all that",
		"ok course learners get commit ",
		"warns port only this machine reaches the room",
		"ok port 127.0.0.1:0 is free",
		"ok graded code runs in containers of runc, which share this machine's kernel",
		"-> install gVisor: docs/classroom.md#grading",
	)
	if strings.Contains(out.String(), "image file") {
		t.Error("a room that lends is asked for an image that nobody takes")
	}
	if state, err := os.ReadDir(d.State); err == nil && len(state) > 1 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something beside the modules is in the state folder: %v, %v", state, err)
	}
}

func TestClassroomDoctorNamesTheCommandThatFixes(t *testing.T) {
	d, out := doctored(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	d.listen, d.size = taken.Addr().String(), 40
	d.offer.lend = 0
	if err := os.RemoveAll(string(d.roomModules())); err != nil {
		t.Fatal(err)
	}
	d.machine = func(context.Context) []doctor.Finding {
		return []doctor.Finding{{Name: "disk", Severity: doctor.Stops, Detail: "1 GB free", Fix: "free some disk"}}
	}
	if err := os.WriteFile(filepath.Join(d.Root, "labs", "suite.go"), []byte("package labs // changed\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := d.run(t.Context()); exit.Code(err) != exit.EnvironmentError || !strings.Contains(err.Error(), "disk, room, go modules") {
		t.Errorf("classroom doctor: %v", err)
	}
	contains(t, lines(out),
		"STOPS disk 1 GB free -> free some disk",
		"STOPS room 15 clusters fit, and not 40 learners: not enough memory",
		"-> N=15 fits, FORCE=1 tries it all the same",
		"STOPS go modules 1 module that the labs need are not in ",
		"-> make classroom-modules",
		"warns course not all changes are committed",
		"warns port listen tcp "+d.listen,
	)
	d.size = 3
	out.Reset()
	_ = d.run(t.Context())
	contains(t, lines(out), "warns image file the node image is not packed")
}

func TestClassroomDoctorTellsThatGradedCodeSharesTheKernel(t *testing.T) {
	d, _ := doctored(t)
	for runtimes, want := range map[string]int{"runc": 1, "runc runsc": 0} {
		d.runtimes = func(context.Context) ([]string, string, error) { return strings.Fields(runtimes), "runc", nil }
		if got := d.grading(t.Context()); len(got) != want {
			t.Errorf("with %s: %v", runtimes, got)
		}
	}
}

func TestClassroomDoctorSaysWhatTheKernelLacks(t *testing.T) {
	d, out := doctored(t)
	d.supplies = func(context.Context, nodeimage.Image) map[doctor.Resource]doctor.Supply {
		return map[doctor.Resource]doctor.Supply{doctor.Inotify: {Amount: 62, Fix: "make setup"}}
	}
	if err := d.run(t.Context()); exit.Code(err) != exit.EnvironmentError {
		t.Errorf("classroom doctor: %v", err)
	}
	if got := lines(out); !strings.Contains(got, "STOPS room ") || !strings.Contains(got, "-> make setup") {
		t.Error(got)
	}
}
