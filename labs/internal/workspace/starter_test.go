package workspace_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/internal/workspace"
)

var handedOut = time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)

// What is unpacked elsewhere is a workspace like one that was created there.
func TestAStarterThatIsHandedOutIsAWorkspace(t *testing.T) {
	b := newBench(t)
	starter, err := workspace.Starter(t.Context(), b.course, handedOut)
	if err != nil {
		t.Fatal(err)
	}
	if err := starter.WriteTo(b.dir); err != nil {
		t.Fatal(err)
	}
	b.mustEqual(b.stage(0))
	if status := b.git("status", "--porcelain"); status != "" {
		t.Errorf("its repository sees changes:\n%s", status)
	}
	if log := b.git("log", "--format=%s %ct"); log != fmt.Sprint("Start of lab 1 ", handedOut.Unix()) {
		t.Errorf("its history: %q", log)
	}
	b.write("main.go", "package main // mine\n")
	mine := b.tree()
	b.solve(2)
	b.mustEqual(b.stage(2))
	b.undo()
	b.mustEqual(mine)
}

func TestAStarterIsAlwaysTheSame(t *testing.T) {
	b := newBench(t)
	first, err := workspace.Starter(t.Context(), b.course, handedOut)
	if err != nil {
		t.Fatal(err)
	}
	second, err := workspace.Starter(t.Context(), b.course, handedOut)
	if diff := first.Diff(second); diff != nil || err != nil {
		t.Errorf("differ: %q, %v", diff, err)
	}
	if later, err := workspace.Starter(t.Context(), b.course, handedOut.Add(time.Hour)); err != nil || first.Diff(later) == nil {
		t.Errorf("the time of the commit is not the one that was given, or %v", err)
	}
}
