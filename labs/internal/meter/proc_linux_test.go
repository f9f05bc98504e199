package meter

import (
	"os/exec"
	"testing"
)

// What a program used that has ended must not be lost: a compiler is gone before anybody reads the counter.
func TestTreeOfThisProcessKeepsWhatItsChildrenUsed(t *testing.T) {
	before, err := Tree()
	if err != nil {
		t.Fatal(err)
	}
	const script = `i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done`
	if err := exec.CommandContext(t.Context(), "sh", "-c", script).Run(); err != nil {
		t.Fatal(err)
	}
	after, err := Tree()
	if err != nil {
		t.Fatal(err)
	}
	if used := after - before; used < 50_000_000 { // 50 ms; a loop of that length takes hundreds
		t.Errorf("the tree used %v, want the time of its child in it", used)
	}
}
