package workspace_test

import (
	"testing"

	"github.com/example/operator-lab/labs/internal/workspace"
)

// What is unpacked elsewhere is a workspace like one that was created there.
func TestAStarterThatIsHandedOutIsAWorkspace(t *testing.T) {
	b := newFixture(t)
	starter, err := workspace.Starter(t.Context(), b.course)
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
	if log := b.git("log", "--format=%s"); log != "Start of lab 1" {
		t.Errorf("its history: %q", log)
	}
	b.write("main.go", "package main // mine\n")
	b.comesBack(2)
}
