package roomclient

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/verdict"
)

// joined is a state folder of somebody who has joined a classroom that does not answer.
func joined(t *testing.T, name string) string {
	t.Helper()
	state := t.TempDir()
	data, err := json.Marshal(Room{Address: "127.0.0.1:1", Key: "ABCD-EFGH-IJKL-MNOP", Name: name, Token: "t"})
	if err == nil {
		err = os.WriteFile(filepath.Join(state, ConfigFile), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return state
}

func TestResultsWaitForTheBoard(t *testing.T) {
	state := joined(t, "Ana")
	var told []string
	report := func(results ...*verdict.Result) {
		if err := Report(t.Context(), state, results); err != nil {
			told = append(told, err.Error())
		}
	}
	report(&verdict.Result{Run: "r1", Lab: 1}, &verdict.Result{Run: "r1", Lab: 2})
	report(&verdict.Result{Run: "r2", Lab: 1})
	if len(told) != 2 || !strings.Contains(told[1], "3 of your results wait") {
		t.Errorf("told %q", told)
	}
}

func TestReportWithoutAClassroomDoesNothing(t *testing.T) {
	state := t.TempDir()
	if err := Report(t.Context(), state, []*verdict.Result{{Run: "r1"}}); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(state, "outbox")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something waits: %v", err)
	}
}

func TestReportedResultHasNoHomePaths(t *testing.T) {
	t.Setenv("HOME", "/home/lovelace")
	data, err := anonymous(&verdict.Result{
		Run: "r1", Workspace: "/home/lovelace/w",
		Build: &verdict.Build{Output: `/home/lovelace/w/main.go:3: see /home/lovelace/notes, "/home/lovelace/w". /home/lovelace2/x /home/lovelace/watch`},
	})
	if err != nil {
		t.Fatal(err)
	}
	var r verdict.Result
	if err := json.Unmarshal(data, &r); err != nil {
		t.Fatal(err)
	}
	if want := `workspace/main.go:3: see ~/notes, "workspace". /home/lovelace2/x ~/watch`; r.Build.Output != want {
		t.Errorf("%s, want %s", r.Build.Output, want)
	}
}
