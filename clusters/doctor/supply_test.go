package doctor

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// amounts are the supplies without the commands.
func amounts(t *testing.T, p *patient) map[Resource]uint64 {
	t.Helper()
	found := map[Resource]uint64{}
	for resource, s := range supplies(t.Context(), p.options, p.machine) {
		found[resource] = s.Amount
	}
	return found
}

func fullMachine() *patient {
	p := healthy()
	p.answers["docker info --format {{.DockerRootDir}}"] = "/var/lib/docker"
	p.write("proc/sys/net/ipv4/ip_local_port_range", "32768\t60999\n")
	p.write("proc/net/sockstat", "sockets: used 300\nTCP: inuse 232 orphan 0 tw 4 alloc 300 mem 20\n")
	return p
}

func TestSuppliesOfAMachineWhoseKernelTheEngineShares(t *testing.T) {
	p := fullMachine()
	delete(p.answers, "docker run") // nothing is started to look
	want := map[Resource]uint64{
		Memory: 16 * giga, Disk: 100 * giga, Inotify: 8192, PIDs: 60000 - 300, Ports: 28000, BridgePorts: 1024,
	}
	if diff := cmp.Diff(want, amounts(t, p)); diff != "" {
		t.Errorf("supplies (-want +got):\n%s", diff)
	}
}

// On macOS the kernel of the nodes is another one, and what this one says is of no use.
func TestSuppliesOfAnEngineInAVirtualMachine(t *testing.T) {
	p := fullMachine()
	p.os = "darwin"
	p.answers["docker run"] = insideWith(128, 7*giga, time.Unix(0, 0))
	want := map[Resource]uint64{Memory: 16 * giga, Disk: 7 * giga, Inotify: 128, BridgePorts: 1024}
	if diff := cmp.Diff(want, amounts(t, p)); diff != "" {
		t.Errorf("supplies (-want +got):\n%s", diff)
	}
}

func TestSuppliesWithoutAnEngine(t *testing.T) {
	p := fullMachine()
	p.options.NoEngine = true
	p.errors["docker"] = errors.New("asked for an engine that nobody wants")
	got := amounts(t, p)
	if _, ok := got[BridgePorts]; ok || got[Disk] != 100*giga || got[Inotify] != 8192 {
		t.Errorf("supplies %v", got)
	}
}

func TestWhatIsNotKnownIsNotSupplied(t *testing.T) {
	p := fullMachine()
	delete(p.files, "proc/meminfo")
	delete(p.files, "proc/sys/net/ipv4/ip_local_port_range")
	got := amounts(t, p)
	for _, resource := range []Resource{Memory, Ports} {
		if n, ok := got[resource]; ok {
			t.Errorf("%s: %d, and nobody knows", resource, n)
		}
	}
}

func TestTooFewInstancesAreFixed(t *testing.T) {
	p := fullMachine()
	s := supplies(t.Context(), p.options, p.machine)
	if s[Inotify].Fix != "make setup" || !strings.Contains(s[PIDs].Fix, "TasksMax") {
		t.Errorf("%+v", s)
	}
}
