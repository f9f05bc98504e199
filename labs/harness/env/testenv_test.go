package env

import (
	"path/filepath"
	"testing"

	"github.com/example/operator-lab/labs/harness/apiproxy"
)

// Checks begin, and a manager that was started anew is held to its rest, when its caches are filled.
func TestManagerKnows(t *testing.T) {
	var sent traffic
	m := &ManagerProcess{output: newTail(filepath.Join(t.TempDir(), "manager.log"))}
	e := &testEnv{manager: m, activity: newActivityMonitor(sent.since)}
	say := func(line string) {
		if _, err := m.output.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want bool, when string) {
		t.Helper()
		if got := e.knows(0); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect(false, "before it says anything")
	if !e.knows(cacheTimeout + 1) {
		t.Error("one whose log is silent is waited for in vain")
	}
	say("INFO Starting Controller")
	expect(false, "while it fills its caches")
	say(`{"level":"info","msg":"Starting workers","worker count":1}`)
	expect(true, "when its workers start")
	e.restarts()
	expect(false, "when it is started anew")
	say("INFO Starting workers")
	expect(true, "when its workers start again")
}

// A program whose ports are fixed, and one that insists on being the leader, cannot run several times on one machine.
func TestConflictingManagers(t *testing.T) {
	lease := apiproxy.Request{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "lab-system", Name: "l"}
	for name, tc := range map[string]struct {
		exited, log string
		sent        traffic
		want        bool
	}{
		"works":                    {"", "INFO Starting workers", traffic{listing}, false},
		"ended over its port":      {"exit status 1", "listen tcp :8080: bind: address already in use", nil, true},
		"ended without saying why": {"exit status 1", "", nil, true},
		"does without the port":    {"", "listen tcp :8080: bind: address already in use", traffic{listing}, false},
		"waits for the lease":      {"", "attempting to acquire leader lease", traffic{lease}, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := &ManagerProcess{output: newTail(filepath.Join(t.TempDir(), "manager.log")), wanted: true, exited: tc.exited}
			if _, err := m.output.Write([]byte(tc.log + "\n")); err != nil {
				t.Fatal(err)
			}
			if got := (&testEnv{manager: m}).conflicts(tc.sent); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// A check that ended may have left the manager stopped, or started with an image of its own.
func TestRestoredManagers(t *testing.T) {
	const image = "memcached:1"
	for name, tc := range map[string]struct {
		manager *ManagerProcess
		restore bool
	}{
		"as it was":            {&ManagerProcess{wanted: true, image: image}, false},
		"ended by itself":      {&ManagerProcess{wanted: true, image: image, exited: "exit status 1"}, false},
		"stopped by a check":   {&ManagerProcess{image: image, exited: "signal: terminated"}, true},
		"with another image":   {&ManagerProcess{wanted: true, image: "memcached:2"}, true},
		"never started at all": {&ManagerProcess{}, true},
	} {
		if got := !tc.manager.runs(image); got != tc.restore {
			t.Errorf("%s: restored: %v, want %v", name, got, tc.restore)
		}
	}
}
