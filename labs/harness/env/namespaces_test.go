package env

import (
	"slices"
	"testing"

	"github.com/example/operator-lab/labs/internal/trace"
)

// A process hides from its manager the namespaces of the checks of all other processes, and none of its own.
func TestNamespacesOfOtherProcessesAreHidden(t *testing.T) {
	const run, processes = "abc", 3
	checks := []string{"creates", "restarts"}
	for process := 1; process <= processes; process++ {
		hidden := hiddenFrom(process, processes, run, checks)
		for other := 1; other <= processes; other++ {
			for _, check := range checks {
				for _, name := range namespacesOf(run, other, check) {
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
}
