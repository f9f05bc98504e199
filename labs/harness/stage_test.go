package harness

import (
	"path/filepath"
	"testing"
)

// Checks begin, and a manager that was started anew is held to its rest, when its caches are filled.
func TestWhenAManagerKnowsWhatThereIs(t *testing.T) {
	var sent traffic
	m := &Manager{output: newTail(filepath.Join(t.TempDir(), "manager.log"))}
	s := &stage{manager: m, pulse: newPulse(sent.since, prompt)}
	say := func(line string) {
		if _, err := m.output.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want bool, when string) {
		t.Helper()
		if got := s.knows(0); got != want {
			t.Errorf("%s: %v, want %v", when, got, want)
		}
	}
	expect(false, "before it says anything")
	if !s.knows(CacheBudget + 1) {
		t.Error("one whose log is silent is waited for in vain")
	}
	say("INFO Starting Controller")
	expect(false, "while it fills its caches")
	say(`{"level":"info","msg":"Starting workers","worker count":1}`)
	expect(true, "when its workers start")
	s.restart()
	expect(false, "when it is started anew")
	say("INFO Starting workers")
	expect(true, "when its workers start again")
}
