package harness

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2"

	"github.com/example/operator-lab/labs/harness/recorder"
	"github.com/example/operator-lab/labs/internal/finding"
	"github.com/example/operator-lab/labs/internal/trace"
)

// enrolled sets the roll for one test.
func enrolled(t *testing.T, apart, beside []string) {
	t.Helper()
	before := roll
	t.Cleanup(func() { roll = before })
	roll.apart, roll.beside = apart, beside
}

func TestAChecksDecoratorsSayWhereItWorks(t *testing.T) {
	enrolled(t, nil, nil)
	body := func() {}
	if got := enroll("restarts", []any{Apart, Long, body}); len(got) != 2 || got[0] != Long {
		t.Errorf("Ginkgo gets %v", got)
	}
	enroll("storm", []any{ginkgo.Serial, Late, body})
	enroll("creates", []any{body})
	if diff := cmp.Diff([][]string{{"restarts"}, {"creates"}}, [][]string{roll.apart, roll.beside}); diff != "" {
		t.Error(diff)
	}
}

// What the manager of the others must not see is what those that are apart, and asked, work in: a trace knows whose it is.
func TestChecksThatAreApartHaveTheirNamespaceBeforehand(t *testing.T) {
	enrolled(t, []string{"restarts", "needs-pods", "of-another-lab"}, nil)
	reserved := reserve(Config{Checks: []string{"restarts", "needs-pods", "creates"}, Unjudged: []string{"needs-pods"}})
	if len(reserved) != 1 || trace.CheckOf(reserved["restarts"]) != "restarts" {
		t.Errorf("reserved are %v", reserved)
	}
	before := suite.shared
	t.Cleanup(func() { suite.shared = before })
	suite.shared.Reserved = reserved
	if v := viewOf(""); v.Only != "" || len(v.Except) != 1 || v.Except[0] != reserved["restarts"] {
		t.Errorf("the others see %+v", v)
	}
	if v := viewOf(reserved["restarts"]); v.Only != reserved["restarts"] || v.Except != nil {
		t.Errorf("it sees %+v", v)
	}
}

// A program whose ports are fixed, and one that insists on being the leader, cannot run twice on one machine.
func TestWhichManagersCannotRunTwice(t *testing.T) {
	lease := recorder.Request{Verb: "get", Group: "coordination.k8s.io", Resource: "leases", Namespace: "lab-system", Name: "l"}
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
			m := &Manager{output: newTail(filepath.Join(t.TempDir(), "manager.log")), wanted: true, exited: tc.exited}
			if _, err := m.output.Write([]byte(tc.log + "\n")); err != nil {
				t.Fatal(err)
			}
			s := &stage{manager: m}
			if got := s.crowded(tc.sent.since(0)); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// One that cannot run beside the others' manager has to wait for all who need that one, and for its turn.
func TestTurnsAreTakenOneAfterTheOther(t *testing.T) {
	enrolled(t, []string{"a", "b"}, []string{"creates", "pods", "of-another-lab"})
	before := suite.config
	t.Cleanup(func() { suite.config = before })
	suite.config = Config{Checks: []string{"creates", "pods", "a", "b"}}
	synctest.Test(t, func(t *testing.T) {
		m := &Manager{wanted: true, program: program{Refused: finding.New(CauseManagerExited, "", "")}} // so that nothing is started
		s := &stage{manager: m, progress: newProgress()}
		turn := func(check string) bool {
			s.turn(check)
			synctest.Wait()
			return s.turn(check)
		}
		s.progress.end("creates")
		if turn("a") || m.stopped() {
			t.Error("it is taken while another check is at work")
		}
		s.progress.end("pods")
		if !turn("a") || !m.stopped() {
			t.Error("it is refused when all others are over")
		}
		if turn("b") {
			t.Error("two have it at once")
		}
		if s.turnEnded("b") || !s.turnEnded("a") {
			t.Error("it is ended by somebody else")
		}
		if !turn("b") {
			t.Error("the next one does not get it")
		}
	})
}
