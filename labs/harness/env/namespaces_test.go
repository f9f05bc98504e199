package env

import (
	"slices"
	"testing"

	"github.com/example/operator-lab/labs/internal/trace"
)

// What one process's manager must not see is what the checks of all other processes may work in, and nothing of its own.
func TestAManagerSeesTheNamespacesOfItsOwnProcess(t *testing.T) {
	const run, processes = "abc", 3
	checks := []string{"creates", "restarts"}
	for process := 1; process <= processes; process++ {
		hidden := hiddenFrom(process, processes, run, checks)
		for other := 1; other <= processes; other++ {
			for _, check := range checks {
				for n := range namespacesPerCheck {
					name := namespaceName(run, other, check, n)
					if slices.Contains(hidden, name) != (other != process) {
						t.Errorf("process %d, namespace %s of process %d: hidden are %v", process, name, other, hidden)
					}
					if got := trace.CheckOf(name); got != check {
						t.Errorf("a trace takes %s for a namespace of %q", name, got)
					}
				}
			}
		}
		slices.Sort(hidden)
		if unique := slices.Compact(slices.Clone(hidden)); len(unique) != (processes-1)*len(checks)*namespacesPerCheck {
			t.Errorf("process %d: %d names, some of them twice: %v", process, len(hidden), hidden)
		}
	}
	if hidden := hiddenFrom(1, 1, run, checks); len(hidden) != 0 {
		t.Errorf("the only process hides %v", hidden)
	}
	if namespaceName("abc", 1, "creates", 0) == namespaceName("abd", 1, "creates", 0) {
		t.Error("a second run on the same cluster has the names of the first")
	}
}

func TestACheckHasItsNamespacesUntilItEnds(t *testing.T) {
	var p place
	name := func(n int) string { return string(rune('a' + n)) }
	for n := range namespacesPerCheck {
		if ns, err := p.add("creates", name); err != nil || ns != name(n) {
			t.Errorf("namespace %d is %q, %v", n, ns, err)
		}
	}
	if ns, err := p.add("creates", name); err == nil {
		t.Errorf("it got %q, which other managers would see", ns)
	}
	if got := p.all(); len(got) != namespacesPerCheck {
		t.Errorf("it works in %v", got)
	}
	p.leave()
	if got := p.all(); len(got) != 0 {
		t.Errorf("after its end it works in %v", got)
	}
	if ns, err := p.add("restarts", name); err != nil || ns != name(0) {
		t.Errorf("the next check gets %q, %v", ns, err)
	}
}
